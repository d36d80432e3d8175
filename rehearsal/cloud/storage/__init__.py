"""Cloud Storage: the JSON API, its uploads, and reads of content.

Buckets and objects are kept in the store, every generation of an object with its content, and a
bucket's retention policy keeps them. Access control lists, encryption keys, retention of
single objects, lifecycle rules, soft deletion and notifications are not simulated.
"""
