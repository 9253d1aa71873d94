"""Rooms: a class that follows a lesson on its phones. All of it lives in memory and is gone when a room closes. No torch, no store."""
