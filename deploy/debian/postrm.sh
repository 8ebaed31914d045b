#!/bin/sh
set -e
program=@PROGRAM@
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl --system daemon-reload >/dev/null || true
fi
if [ "$1" = remove ] && [ -x /usr/bin/deb-systemd-helper ]; then
  deb-systemd-helper mask "$program.service" >/dev/null || true
fi
if [ "$1" = purge ]; then
  if [ -x /usr/bin/deb-systemd-helper ]; then
    deb-systemd-helper purge "$program.service" >/dev/null || true
    deb-systemd-helper unmask "$program.service" >/dev/null || true
  fi
  # Purging removes the data, too; removing keeps it. The user stays, so that its uid is not reused.
  rm -rf "/var/lib/$program" "/var/cache/$program"
  rm -f "/etc/$program/token"
  rmdir "/etc/$program" 2>/dev/null || true
fi
