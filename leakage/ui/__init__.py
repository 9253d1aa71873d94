"""Fields to widgets, the live component, pictures and words."""
