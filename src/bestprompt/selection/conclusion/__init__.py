"""What may be said: the verdict, the items at hand, what they can show, and what a budget can settle."""
