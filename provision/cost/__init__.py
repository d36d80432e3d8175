"""What a cluster costs before it is made: its parts times dated prices."""
