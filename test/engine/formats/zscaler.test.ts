import t from 'tap'
import { checkFormat } from '../../support/log-mutations.ts'
import { type LogRows, MessageReader } from '../../support/log-rows.ts'

const RECORD =
  '"Fri Nov 20 08:15:02 2026","jdoe@example.com","HTTPS","chatgpt.com/backend-api/conversation","Allowed","ChatGPT","AI and ML Applications","1212","9800","41","58","Business Use","Information Technology","AI and ML Apps","None","None","0","None","None","HQ","Sales, EMEA","192.0.2.45","198.51.100.20","POST","200","Mozilla/5.0 (Windows NT 10.0%2c Win64)","None","None","None","Other","None","jdoe","PC-7","N/A"'
const TABS =
  '2026-11-20 09:15:02\treason=Not allowed\tevent_id=7\tprotocol=HTTPS\taction=Blocked\ttransactionsize=65\tserverip=198.51.100.20\trequestmethod=CONNECT\trefererURL=https://ref.example.net/\tuseragent=ZTunnel/1.0 bot.example.com\tClientIP=192.0.2.45\tuser=jdoe@example.com\turl=chatgpt.com:443\thostname=chatgpt.com\tclientpublicIP=203.0.113.7\tfilename=setup.zip'
const CIRCUMFLEXES =
  'ZSCALERNSS: time=Fri Nov  6 09:15:02 2026^^timezone=GMT^^action=Allowed^^reason=Allowed^^hostname=claude.ai^^protocol=HTTPS^^url=claude.ai/new chat?a=b^^clientpublicIP=203.0.113.7^^ClientIP=192.0.2.45^^department=Sales, EMEA'

const rows: LogRows = {
  'a quoted record': [RECORD, 'event chatgpt.com from 192.0.2.45 at 2026-11-20T08:15:02, allowed'],
  'with blanks between commas and quotes, and a line end': [
    `${RECORD.replaceAll('","', '", "')}\r\n`,
    'event chatgpt.com from 192.0.2.45',
  ],
  'without quotes': [RECORD.replace('Sales, EMEA', 'Sales').replaceAll('"', ''), 'event chatgpt.com from 192.0.2.45'],
  'a doubled quote in the URL, an IPv6 client, blocked': [
    RECORD.replace('conversation"', 'x?q=""a,b"""').replace('192.0.2.45', '2001:DB8::45').replace('Allowed', 'Blocked'),
    'event chatgpt.com from 2001:DB8::45, blocked',
  ],
  'hidden users have numbers in place of addresses': [
    RECORD.replace('192.0.2.45', '4123456789'),
    'event chatgpt.com from -',
  ],
  'an address as host': [RECORD.replace('chatgpt.com/', '198.51.100.20/'), 'noDomain from 192.0.2.45'],
  'no URL': [RECORD.replace('chatgpt.com/backend-api/conversation', 'None'), 'noDomain'],
  'text in place of the client': [RECORD.replace('192.0.2.45', 'pc-7.example.org'), 'reject chatgpt.com: client'],
  'truncated before the client': [RECORD.slice(0, 200), 'reject: client'],
  '31 April': [RECORD.replace('Nov 20', 'Apr 31'), 'reject: time'],
  'pairs after TABs; referer, agent and file are no hosts': [
    TABS,
    'event chatgpt.com from 192.0.2.45 at 2026-11-20T09:15:02, blocked',
  ],
  'TABs as rsyslog writes them': [TABS.replaceAll('\t', '#011'), 'event chatgpt.com from 192.0.2.45, blocked'],
  'only a reason gives the action': [
    '2026-11-20 09:15:02\treason=Allowed\tClientIP=192.0.2.45\turl=claude.ai',
    'event claude.ai, allowed',
  ],
  'pairs without host': [
    '2026-11-20 09:15:02\treason=Allowed\tClientIP=192.0.2.45\tprotocol=UDP',
    'noDomain from 192.0.2.45',
  ],
  'pairs without client and host are not of a client': ['2026-11-20 09:15:02\treason=x\tuser=jdoe@example.com', 'skip'],
  '29 February of a common year': [TABS.replace('11-20', '02-29'), 'reject: time'],
  'pairs between circumflexes, with a zone': [
    CIRCUMFLEXES,
    'event claude.ai from 192.0.2.45 at 2026-11-06T09:15:02Z, allowed',
  ],
  'the tag with pairs after TABs': [`ZscalerNSS: ${TABS}`, 'event chatgpt.com from 192.0.2.45'],
  DNS: [
    'ZSCALERNSS: datetime=Fri Nov 20 09:15:02 2026^^epochtime=1795162502^^clt_sip=192.0.2.45^^dns_req=API.OpenAI.com.^^dns_resp=cdn.example.net^^reqaction=Block',
    'event api.openai.com from 192.0.2.45 at 2026-11-20T08:15:02Z, blocked',
  ],
  'its own messages': ['ZscalerNSS: The NSS free memory is low at nss.example.org, 192.0.2.45', 'skip'],
  'the tag alone': ['ZscalerNSS:', 'skip'],
  'a time and a TAB, but no pair': ['2026-11-20 09:15:02\tclaude.ai is it', 'unknown'],
  'a time of another kind': ['"Fri Nov 20 08:15 2026","a","b"', 'unknown'],
}
checkFormat(t, 'zscaler', rows)

t.test('long values take linear time', async (t) => {
  const reader = new MessageReader()
  t.equal(reader.read(RECORD.replace('conversation', 'x'.repeat(65_536))).host, 'chatgpt.com')
  t.equal(reader.read(`${TABS}${'\tk=v'.repeat(10_000)}`).host, 'chatgpt.com')
  t.equal(reader.read(`ZSCALERNSS: url=claude.ai^^${'^'.repeat(100_000)}`).host, 'claude.ai')
  t.equal(reader.read(`"Fri Nov 20 08:15:02 2026"${','.repeat(200_000)}`).verdict, 'noDomain')
})

t.test('circumflexes are read after a header that took the tag', async (t) => {
  const pairs =
    'timezone=GMT^^action=Blocked^^user=jdoe@mail.example^^cip=192.0.2.45^^url=claude.ai/chat a=b^^host=claude.ai'
  t.match(new MessageReader().read(`time=Fri Nov 20 09:15:02 2026^^${pairs}`), {
    format: 'zscaler',
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
    time: '2026-11-20T09:15:02.000Z',
    action: 'blocked',
  })
  t.not(new MessageReader().read('time=1795162502 a=b^^c d=e').format, 'zscaler')
})
