"""Models behind an endpoint: chats and token ids, one by one or in batches."""
