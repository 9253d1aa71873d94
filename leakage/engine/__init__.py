"""The mathematics; knows no store and no page."""
