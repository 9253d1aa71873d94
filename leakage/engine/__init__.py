"""The mathematics: clients, protections, attackers' observations, and what attacks share. Nothing here depends on a store or a page."""
