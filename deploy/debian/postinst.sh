#!/bin/sh
set -e
program=@PROGRAM@
settings=@SETTINGS@
# Without its secret the program cannot run, so it is neither started nor enabled before. Empty: it needs none.
secret=@SECRET_FILE@
setting=@SECRET_SETTING@
unit=$program.service
# Of preinst.
upgrading=/run/$program.upgrading

case "$1" in
configure | abort-upgrade | abort-deconfigure | abort-remove) ;;
*) exit 0 ;;
esac

adduser --system --group --quiet --no-create-home --home "/var/lib/$program" "$program"
# It holds a secret; the program reads it again when it is told to.
if [ -z "$2" ] && [ -e "$settings" ]; then
  chgrp "$program" "$settings"
  chmod 0640 "$settings"
fi

configured() {
  [ -z "$secret" ] || [ -s "$secret" ] || grep -qs "^[[:space:]]*$setting=." "$settings"
}

# As the scripts that debhelper makes: enabled at first, and again only where nobody has disabled it.
deb-systemd-helper unmask "$unit" >/dev/null || true
if { [ -n "$2" ] || configured; } && deb-systemd-helper --quiet was-enabled "$unit"; then
  deb-systemd-helper enable "$unit" >/dev/null || true
else
  deb-systemd-helper update-state "$unit" >/dev/null || true
fi
if [ -d /run/systemd/system ]; then
  systemctl --system daemon-reload >/dev/null || true
  if [ -e "$upgrading" ]; then
    # One that was stopped stays so.
    if systemctl --quiet is-active "$unit"; then deb-systemd-invoke restart "$unit" >/dev/null || true; fi
  elif configured; then
    # New, or back after a removal. Not where somebody has disabled it.
    deb-systemd-invoke start "$unit" >/dev/null || true
  fi
fi
if [ -z "$2" ] && ! configured; then
  echo "$program: write the monitoring token into $secret, then: systemctl enable --now $program"
fi
rm -f "$upgrading"
