import t from 'tap'
import { checkFormat } from '../../support/log-mutations.ts'
import type { LogRows } from '../../support/log-rows.ts'

const HIT =
  'id=firewall sn=0017C5000001 time="2026-11-20 08:15:02 UTC" fw=203.0.113.1 pri=6 c=1024 gcat=2 m=97 msg="Web site hit" src=192.0.2.45:50222:X0 dst=198.51.100.20:443:X1 usr="jdoe" proto=tcp/https sent=911 rcvd=20480 dstname=claude.ai arg=/api/organizations code=64 Category="Not Rated" n=9 fw_action="NA"'

const rows: LogRows = {
  'a visited web site': [HIT, 'event claude.ai from 192.0.2.45 at 2026-11-20T08:15:02Z, allowed'],
  'blanks and an address before it': [` 192.0.2.1  ${HIT}`, 'event claude.ai from 192.0.2.45'],
  'another word as id': [HIT.replace('id=firewall', 'id=HQ-TZ670'), 'event claude.ai'],
  'an unnamed zone': [HIT.replace(' UTC', ''), 'event claude.ai at 2026-11-20T08:15:02'],
  'a blocked web site': [
    HIT.replace('m=97', 'm=14').replace('Web site hit', 'Web site access denied'),
    'event claude.ai, blocked',
  ],
  'an IPv6 client has its own pair': [
    HIT.replace('src=192.0.2.45:50222:X0', 'src=:50222:X0 srcV6=2001:db8:10::45'),
    'event claude.ai from 2001:db8:10::45',
  ],
  'no port': [HIT.replace(':50222:X0', '::X0'), 'event claude.ai from 192.0.2.45'],
  'a source with its name': [HIT.replace(':50222:X0', ':50222:X0:pc-7.example.com'), 'event claude.ai from 192.0.2.45'],
  'values in apostrophes, and msg twice': [
    HIT.replace('msg="Web', 'appName=\'General HTTPS dstname=evil.example\' msg="x dstname=evil.example" msg="Web'),
    'event claude.ai',
  ],
  'the first nonempty name counts': [HIT.replace('dstname=', 'dstname= dstname='), 'event claude.ai'],
  'a connection names no host': [
    'id=firewall sn=0017C5000001 time="2026-11-20 08:15:02" fw=203.0.113.1 pri=6 c=262144 m=98 msg="Connection Opened" src=192.0.2.45:50222:X0 dst=198.51.100.20:443:X1 proto=tcp/https',
    'noDomain from 192.0.2.45',
  ],
  'a name from a reverse lookup is not the requested name': [
    'id=firewall sn=0017C5000001 time="2026-11-20 08:15:02" fw=203.0.113.1 pri=6 m=537 msg="Connection Closed" src=192.0.2.45:50222:X0 dst=198.51.100.20:443:X1:server.example.com fw_action="forward"',
    'noDomain, allowed',
  ],
  'an address as the name': [HIT.replace('dstname=claude.ai', 'dstname=198.51.100.20'), 'noDomain'],
  'a file as the argument': [
    HIT.replace('dstname=claude.ai ', '').replace('/api/organizations', 'setup.zip'),
    'noDomain',
  ],
  'an external client sends a request to an internal server': [
    HIT.replace('dst=198.51.100.20', 'dst=10.0.0.9'),
    'skip',
  ],
  'a log-in of an administrator': [
    'id=firewall sn=0017C5000001 time="2026-11-20 08:15:02" fw=203.0.113.1 pri=6 c=16 m=29 msg="Administrator login allowed" src=192.0.2.2:0:X0 n=1',
    'skip',
  ],
  'Stormshield, with its zone apart': [
    'id=firewall time="2026-11-20 09:15:02" fw="sns-1" tz=+0100 startime="2026-11-20 09:15:01" pri=5 proto=ssl src=10.20.30.45 srcport=51234 dst=198.51.100.20 dstport=443 dstname=claude.ai action=pass user="jdoe"',
    'event claude.ai from 10.20.30.45 at 2026-11-20T08:15:02Z, allowed',
    { user: 'jdoe' },
  ],
  'a nonexistent hour': [HIT.replace('08:15:02', '28:15:02'), 'reject: time'],
  'a serial number alone': ['sn=1 msg="hello" x=2', 'unknown'],
}

checkFormat(t, 'firewall-kv', rows)
