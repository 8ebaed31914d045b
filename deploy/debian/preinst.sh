#!/bin/sh
set -e
# For postinst, which is not told whether the package was there before or only its settings.
if [ "$1" = upgrade ]; then
  touch "/run/@PROGRAM@.upgrading"
else
  rm -f "/run/@PROGRAM@.upgrading"
fi
