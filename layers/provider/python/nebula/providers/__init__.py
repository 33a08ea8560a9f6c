"""The provider layer: one package per provider behind one Protocol."""
