#!/bin/sh
set -e
# For postinst, which cannot tell an installed package from remaining configuration files.
if [ "$1" = upgrade ]; then
  touch "/run/@PROGRAM@.upgrading"
else
  rm -f "/run/@PROGRAM@.upgrading"
fi
