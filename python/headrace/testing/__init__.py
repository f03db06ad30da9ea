"""Helpers that users may import in their own tests."""
