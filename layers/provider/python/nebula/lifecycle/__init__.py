"""What a claim and a Pod should become: pure functions of what is known and the time."""
