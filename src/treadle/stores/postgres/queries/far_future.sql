-- The last moment there is: what would be later is brought back to it. Put in the place of {far_future} in other statements.
timestamptz '9999-12-31 23:59:59.999999+00'
