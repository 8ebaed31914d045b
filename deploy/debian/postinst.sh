#!/bin/sh
set -e
program=@PROGRAM@
settings=@SETTINGS@
# The program cannot run without its secret, so it is neither started nor enabled until the secret
# exists. Empty: the program needs no secret.
secret=@SECRET_FILE@
setting=@SECRET_SETTING@
unit=$program.service
# Written by preinst.
upgrading=/run/$program.upgrading

case "$1" in
configure | abort-upgrade | abort-deconfigure | abort-remove) ;;
*) exit 0 ;;
esac

adduser --system --group --quiet --no-create-home --home "/var/lib/$program" "$program"
# Contains a secret. The program itself rereads the file on reload.
if [ -z "$2" ] && [ -e "$settings" ]; then
  chgrp "$program" "$settings"
  chmod 0640 "$settings"
fi

configured() {
  [ -z "$secret" ] || [ -s "$secret" ] || grep -qs "^[[:space:]]*$setting=." "$settings"
}

# Like debhelper scripts: enabled at first, then only if the administrator has not disabled it.
deb-systemd-helper unmask "$unit" >/dev/null || true
if { [ -n "$2" ] || configured; } && deb-systemd-helper --quiet was-enabled "$unit"; then
  deb-systemd-helper enable "$unit" >/dev/null || true
else
  deb-systemd-helper update-state "$unit" >/dev/null || true
fi
if [ -d /run/systemd/system ]; then
  systemctl --system daemon-reload >/dev/null || true
  if [ -e "$upgrading" ]; then
    # A stopped unit stays stopped.
    if systemctl --quiet is-active "$unit"; then deb-systemd-invoke restart "$unit" >/dev/null || true; fi
  elif configured; then
    # A new installation, or one after a removal, unless the administrator has disabled the unit.
    deb-systemd-invoke start "$unit" >/dev/null || true
  fi
fi
if [ -z "$2" ] && ! configured; then
  echo "$program: write the monitoring token into $secret, then: systemctl enable --now $program"
fi
rm -f "$upgrading"
