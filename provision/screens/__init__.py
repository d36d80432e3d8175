"""What a person reads, as lines made from documents; nothing here prints or asks Google."""
