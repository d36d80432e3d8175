"""What a VM can be asked to do: a closed set of kinds, with arguments and no commands in them."""
