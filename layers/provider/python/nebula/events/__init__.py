"""Events on the bus: the envelope, one model per detail-type, and the publisher."""
