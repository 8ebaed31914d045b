import t from 'tap'
import { checkMutations } from '../../support/log-mutations.ts'
import { checkRows, type LogRow } from '../../support/log-rows.ts'

const HIT =
  'id=firewall sn=0017C5000001 time="2026-11-20 08:15:02 UTC" fw=203.0.113.1 pri=6 c=1024 gcat=2 m=97 msg="Web site hit" src=192.0.2.45:50222:X0 dst=198.51.100.20:443:X1 usr="jdoe" proto=tcp/https sent=911 rcvd=20480 dstname=claude.ai arg=/api/organizations code=64 Category="Not Rated" n=9 fw_action="NA"'

const rows: LogRow[] = [
  {
    name: 'a visited web site',
    line: HIT,
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:02Z',
    action: 'allowed',
  },
  {
    name: 'blanks and an address before it',
    line: ` 192.0.2.1  ${HIT}`,
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
  },
  { name: 'another word as id', line: HIT.replace('id=firewall', 'id=HQ-TZ670'), verdict: 'event', host: 'claude.ai' },
  {
    name: 'an unnamed zone',
    line: HIT.replace(' UTC', ''),
    verdict: 'event',
    host: 'claude.ai',
    time: '2026-11-20T08:15:02',
  },
  {
    name: 'a blocked web site',
    line: HIT.replace('m=97', 'm=14').replace('Web site hit', 'Web site access denied'),
    verdict: 'event',
    host: 'claude.ai',
    action: 'blocked',
  },
  {
    name: 'an IPv6 client has its own pair',
    line: HIT.replace('src=192.0.2.45:50222:X0', 'src=:50222:X0 srcV6=2001:db8:10::45'),
    verdict: 'event',
    host: 'claude.ai',
    client: '2001:db8:10::45',
  },
  {
    name: 'no port',
    line: HIT.replace(':50222:X0', '::X0'),
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
  },
  {
    name: 'a source with its name',
    line: HIT.replace(':50222:X0', ':50222:X0:pc-7.example.com'),
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
  },
  {
    name: 'values in apostrophes, and msg twice',
    line: HIT.replace(
      'msg="Web',
      'appName=\'General HTTPS dstname=evil.example\' msg="x dstname=evil.example" msg="Web',
    ),
    verdict: 'event',
    host: 'claude.ai',
  },
  {
    name: 'the first nonempty name counts',
    line: HIT.replace('dstname=', 'dstname= dstname='),
    verdict: 'event',
    host: 'claude.ai',
  },
  {
    name: 'a connection names no host',
    line: 'id=firewall sn=0017C5000001 time="2026-11-20 08:15:02" fw=203.0.113.1 pri=6 c=262144 m=98 msg="Connection Opened" src=192.0.2.45:50222:X0 dst=198.51.100.20:443:X1 proto=tcp/https',
    verdict: 'noDomain',
    client: '192.0.2.45',
  },
  {
    name: 'a name from a reverse lookup is not the requested name',
    line: 'id=firewall sn=0017C5000001 time="2026-11-20 08:15:02" fw=203.0.113.1 pri=6 m=537 msg="Connection Closed" src=192.0.2.45:50222:X0 dst=198.51.100.20:443:X1:server.example.com fw_action="forward"',
    verdict: 'noDomain',
    action: 'allowed',
  },
  {
    name: 'an address as the name',
    line: HIT.replace('dstname=claude.ai', 'dstname=198.51.100.20'),
    verdict: 'noDomain',
  },
  {
    name: 'a file as the argument',
    line: HIT.replace('dstname=claude.ai ', '').replace('/api/organizations', 'setup.zip'),
    verdict: 'noDomain',
  },
  {
    name: 'an external client sends a request to an internal server',
    line: HIT.replace('dst=198.51.100.20', 'dst=10.0.0.9'),
    verdict: 'skip',
  },
  {
    name: 'a log-in of an administrator',
    line: 'id=firewall sn=0017C5000001 time="2026-11-20 08:15:02" fw=203.0.113.1 pri=6 c=16 m=29 msg="Administrator login allowed" src=192.0.2.2:0:X0 n=1',
    verdict: 'skip',
  },
  {
    name: 'Stormshield, with its zone apart',
    line: 'id=firewall time="2026-11-20 09:15:02" fw="sns-1" tz=+0100 startime="2026-11-20 09:15:01" pri=5 proto=ssl src=10.20.30.45 srcport=51234 dst=198.51.100.20 dstport=443 dstname=claude.ai action=pass user="jdoe"',
    verdict: 'event',
    host: 'claude.ai',
    client: '10.20.30.45',
    time: '2026-11-20T08:15:02Z',
    action: 'allowed',
    user: 'jdoe',
  },
  { name: 'a nonexistent hour', line: HIT.replace('08:15:02', '28:15:02'), verdict: 'reject', reason: /^time/ },
  { name: 'a serial number alone', line: 'sn=1 msg="hello" x=2', verdict: 'unknown' },
]

checkRows(t, 'firewall-kv', rows)
checkMutations(
  t,
  rows.map(({ line }) => line),
)
