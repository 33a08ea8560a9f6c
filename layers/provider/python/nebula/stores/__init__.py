"""The ledgers: Protocols here, a DynamoDB and a memory twin of each, one contract suite over both."""
