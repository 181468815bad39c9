"""The task `chat`: answer the last message of a conversation."""
