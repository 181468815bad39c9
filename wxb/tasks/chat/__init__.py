"""Chat: answers to what people ask, in one turn or several."""
