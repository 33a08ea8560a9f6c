"""The forwarder: lists and watches Pods and NodePools in a cluster and puts hints about them on the bus.

It decides nothing and keeps nothing on disk. Without it the product works at the pace of its sweep.
"""
