import t from 'tap'
import { MessageReader } from '../../support/log-rows.ts'
import * as fc from '../../support/property.ts'

/*
 * Records of devices and services that are no client's request to another host. Each has names
 * where a reader could mistake them for the requested host, names of AI platforms among them, and
 * most have an address where a reader could mistake it for the client. None may become an event: an
 * event accuses a client.
 */

const json = (value: object): string => JSON.stringify(value)
const ISO = '2026-11-20T08:15:02.123Z'
const ACCESS_TIME = '[20/Nov/2026:09:15:02 +0100]'

/** Requests of external clients to the organization's own servers. */
const INBOUND: readonly string[] = [
  json({ timestamp: ISO, event_type: 'tls', src_ip: '203.0.113.9', dest_ip: '10.0.0.7', tls: { sni: 'claude.ai' } }),
  json({ time: ISO, client_ip: '203.0.113.9', dst_ip: '192.168.1.9', url: 'https://claude.ai/' }),
  `time=${ISO} src=203.0.113.9 dst=10.0.0.7:443 host=claude.ai sni=claude.ai action=allow`,
  ...['400', '404', '405', '501'].flatMap((status) => [
    `203.0.113.9 - - ${ACCESS_TIME} "GET https://claude.ai/ HTTP/1.1" ${status} 310 "-" "zgrab"`,
    `203.0.113.9 - - ${ACCESS_TIME} "CONNECT claude.ai:443 HTTP/1.1" ${status} 0`,
  ]),
]

/** The data of Windows events, as they are in EventData. */
const WINDOWS_EVENTS: readonly Record<string, string | number>[] = [
  {
    id: 4624,
    TargetUserName: 'jdoe',
    TargetDomainName: 'CORP',
    IpAddress: '203.0.113.9',
    IpPort: '51234',
    LogonType: 3,
  },
  { id: 4625, TargetUserName: 'admin', WorkstationName: 'claude.ai', IpAddress: '203.0.113.9', LogonType: 10 },
  { id: 4648, SubjectUserName: 'jdoe', TargetServerName: 'chat.openai.com', IpAddress: '203.0.113.9' },
  {
    id: 4768,
    TargetUserName: 'jdoe',
    TargetDomainName: 'openai.com',
    ServiceName: 'krbtgt',
    IpAddress: '::ffff:192.0.2.45',
  },
  { id: 4769, TargetUserName: 'jdoe@openai.com', ServiceName: 'HTTP/claude.ai', IpAddress: '192.0.2.45' },
  { id: 4776, TargetUserName: 'jdoe', Workstation: 'pc-7.example.org', Status: '0x0' },
  {
    id: 4688,
    NewProcessName: 'C:\\Windows\\curl.exe',
    CommandLine: 'curl https://api.openai.com/v1',
    SubjectDomainName: 'CORP',
  },
  {
    id: 5156,
    SourceAddress: '192.0.2.45',
    SourcePort: '51234',
    DestAddress: '198.51.100.20',
    DestPort: '443',
    Application: 'chrome.exe',
  },
  { id: 5140, SubjectUserName: 'jdoe', IpAddress: '192.0.2.45', ShareName: '\\\\claude.ai\\c$' },
  { id: 1149, Param1: 'jdoe', Param2: 'openai.com', Param3: '203.0.113.9' },
  { id: 1102, SubjectUserName: 'jdoe', SubjectDomainName: 'openai.com' },
  { id: 7036, param1: 'Windows Update', param2: 'running' },
]

const WINDOWS = WINDOWS_EVENTS.flatMap(({ id, ...data }) => [
  json({
    '@timestamp': ISO,
    agent: { name: 'pc-7', type: 'winlogbeat', version: '8.15.0', hostname: 'pc-7.openai.com' },
    host: { name: 'pc-7.openai.com', hostname: 'pc-7.openai.com', ip: ['192.0.2.45'], os: { family: 'windows' } },
    event: { code: String(id), kind: 'event', provider: 'Microsoft-Windows-Security-Auditing', action: 'logged-in' },
    winlog: { channel: 'Security', computer_name: 'dc1.openai.com', event_id: String(id), event_data: data },
    source: { ip: '203.0.113.9', domain: 'pc-9.openai.com' },
    log: { level: 'information' },
  }),
  json({
    EventTime: '2026-11-20 09:15:02',
    Hostname: 'dc1.openai.com',
    Keywords: '9232379236109516800',
    EventType: 'AUDIT_SUCCESS',
    SeverityValue: 2,
    EventID: id,
    SourceName: 'Microsoft-Windows-Security-Auditing',
    ProviderGuid: '{54849625-5478-4994-A5BA-3E3B0328C30D}',
    RecordNumber: 4711,
    Channel: 'Security',
    Domain: 'claude.ai',
    ...data,
    SourceModuleName: 'in',
    SourceModuleType: 'im_msvistalog',
  }),
  json({
    date: 1795162502.123,
    ProviderName: 'Microsoft-Windows-Security-Auditing',
    EventID: id,
    TimeCreated: '2026-11-20 09:15:02 +0100',
    Channel: 'Security',
    Computer: 'dc1.claude.ai',
    Message: 'An account was successfully logged on.',
    ...data,
  }),
  json({
    timestamp: ISO,
    Computer: 'dc1.chatgpt.com',
    host: 'dc1.chatgpt.com',
    EventID: id,
    src_ip: '203.0.113.9',
    user: 'jdoe',
    ...data,
  }),
  `EventTime="2026-11-20 09:15:02" Hostname="dc1.openai.com" EventID=${id} Channel="Security" IpAddress="203.0.113.9" Domain="openai.com" ${Object.entries(
    data,
  )
    .map(([key, value]) => `${key}="${value}"`)
    .join(' ')}`,
])

const SIGN_INS = [
  json({
    time: ISO,
    resourceId: '/tenants/0000/providers/Microsoft.aadiam',
    operationName: 'Sign-in activity',
    category: 'SignInLogs',
    callerIpAddress: '203.0.113.9',
    properties: { ipAddress: '203.0.113.9', appDisplayName: 'ChatGPT', resourceDisplayName: 'chatgpt.com' },
  }),
  json({
    TimeGenerated: ISO,
    Type: 'SigninLogs',
    IPAddress: '203.0.113.9',
    AppDisplayName: 'claude.ai',
    ResourceDisplayName: 'api.openai.com',
    UserPrincipalName: 'jdoe@openai.com',
    ConditionalAccessStatus: 'success',
    Domain: 'openai.com',
  }),
  json({
    TimeGenerated: ISO,
    OperationName: 'Add service principal',
    Category: 'ApplicationManagement',
    Identity: 'jdoe',
    ClientIP: '203.0.113.9',
    TargetUrl: 'https://claude.ai/',
    url: 'https://claude.ai/sso/callback',
  }),
  json({
    TimeGenerated: ISO,
    Type: 'AADNonInteractiveUserSignInLogs',
    ClientIP: '203.0.113.9',
    url: 'https://chatgpt.com/auth/callback',
  }),
  json({
    published: ISO,
    eventType: 'user.session.start',
    displayMessage: 'User login to Okta',
    client: { ipAddress: '203.0.113.9', userAgent: { rawUserAgent: 'Mozilla/5.0' } },
    debugContext: { debugData: { requestUri: '/api/v1/authn', url: '/api/v1/authn?' } },
    target: [{ type: 'AppInstance', displayName: 'OpenAI ChatGPT' }],
  }),
  json({
    timestamp: ISO,
    eventType: 'user.authentication.sso',
    clientIp: '203.0.113.9',
    actor: { alternateId: 'jdoe@openai.com' },
    domain: 'openai.okta.com',
    url: 'https://openai.okta.com/app/chatgpt/sso/saml',
  }),
  json({
    timestamp: 1795162502,
    txid: 'x',
    event_type: 'authentication',
    ip: '203.0.113.9',
    host: 'claude.ai',
    user: 'jdoe',
    factor: 'push',
  }),
  json({
    timestamp: ISO,
    type: 'login',
    clientIP: '203.0.113.9',
    hostname: 'login.openai.com',
    url: 'https://login.openai.com/',
  }),
  json({ ts: ISO, logtype: 'auth', srcip: '203.0.113.9', domain: 'openai.com', action: 'allow' }),
  json({
    ts: ISO,
    event: 'LogonSuccess',
    source_ip: '203.0.113.9',
    dest_host: 'dc1.openai.com',
    dest_ip: '198.51.100.20',
  }),
  'time="2026-11-20T08:15:02Z" domain="openai.com" logtype="auth" srcip=203.0.113.9 user="jdoe" result=success',
  'ts=1795162502 logtype=auth domain=claude.ai client_ip=203.0.113.9 action=allow',
  'ts=1795162502 src=203.0.113.9 user=jdoe domain=openai.com msg="User logged in" status=ok',
  'ts=1795162502 src=203.0.113.9 user=jdoe domain=openai.com status=ok',
  'ts=1795162502 client=203.0.113.9 event=login_failed host=vpn.openai.com dst=198.51.100.20 dport=443',
  'date=2026-11-20 time=09:15:02 service=sso src=203.0.113.9 sni=login.openai.com user=jdoe',
  'time=2026-11-20T08:15:02Z authtype=saml src_ip=203.0.113.9 url=https://chatgpt.com/auth/saml user=jdoe',
  'ts=1795162502 src=203.0.113.9 dst=198.51.100.20 mfa=push domain=openai.com',
  'time=1795162502 category=authentication clientip=203.0.113.9 requested_domain=openai.com',
  'type=USER_LOGIN msg=audit(1795162502.123:4711): pid=901 uid=0 auid=1000 ses=7 msg=\'op=login id=1000 exe="/usr/sbin/sshd" hostname=claude.ai addr=203.0.113.9 terminal=ssh res=success\'',
  'type=USER_AUTH msg=audit(1795162502.123:4712): pid=901 uid=0 acct="jdoe" exe="/usr/sbin/sshd" hostname=chat.openai.com addr=203.0.113.9 terminal=ssh res=failed',
  'type=EXECVE msg=audit(1795162502.123:4713): argc=2 a0="curl" a1="https://api.openai.com/v1/models" src=192.0.2.45',
  'type=SYSCALL msg=audit(1795162502.123:4714): arch=c000003e syscall=42 success=yes exit=0 pid=4711 auid=1000 comm="curl" exe="/usr/bin/curl" saddr=192.0.2.45',
  'sshd[901]: Accepted publickey for jdoe from 203.0.113.9 port 51234 ssh2: ED25519 SHA256:abc',
  'sshd[901]: Failed password for invalid user openai.com from 203.0.113.9 port 51234 ssh2',
  'sshd[901]: reverse mapping checking getaddrinfo for claude.ai [203.0.113.9] failed.',
  'sudo[901]: jdoe : TTY=pts/0 ; PWD=/home/jdoe ; USER=root ; COMMAND=/usr/bin/curl https://api.openai.com',
  'sudo: pam_unix(sudo:auth): authentication failure; logname=jdoe uid=1000 euid=0 tty=/dev/pts/0 ruser=jdoe rhost=claude.ai user=jdoe src=192.0.2.45',
  'CEF:0|Okta|System Log|1.0|user.session.start|User login to Okta|3|rt=1795162502000 src=203.0.113.9 suser=jdoe@openai.com dhost=openai.okta.com request=https://openai.okta.com/ act=login',
  'CEF:0|Duo Security|Authentication|1|auth|authentication|3|rt=1795162502000 src=203.0.113.9 dhost=vpn.claude.ai suser=jdoe',
  'CEF:0|CyberArk|Vault|12|7|Logon|5|rt=1795162502000 src=203.0.113.9 dhost=vault.openai.com duser=jdoe act=Logon',
  'CEF:0|Microsoft|ATA|1.9|LdapBruteForce|LDAP Brute Force|8|rt=1795162502000 src=203.0.113.9 dhost=dc1.openai.com',
  'CEF:0|Acme|Gateway|1|100|VPN session opened|3|rt=1795162502000 src=203.0.113.9 dhost=vpn.claude.ai suser=jdoe',
  'CEF:0|Acme|Portal|1|100|access|3|rt=1795162502000 src=203.0.113.9 dhost=portal.openai.com cat=Authentication',
  'LEEF:1.0|Microsoft|Windows|2019|4624|src=203.0.113.9\tusrName=jdoe\tdomain=openai.com\tidentHostName=dc1.openai.com\tdevTime=Nov 20 2026 08:15:02 GMT',
  'LEEF:2.0|Acme|IdP|1.0|Login|^|src=203.0.113.9^usrName=jdoe^url=https://chatgpt.com/sso^devTime=1795162502123',
  'LEEF:1.0|Acme|Directory|1.0|LogonFailed|src=203.0.113.9\tdhost=dc1.claude.ai\tusrName=jdoe',
  '2026-11-20 09:15:02,jdoe,203.0.113.9,vpn.openai.com,login success',
  '2026-11-20 09:15:02;203.0.113.9;claude.ai;Logon',
  '2026-11-20T08:15:02Z|203.0.113.9|login.chatgpt.com|authentication|ok',
]

const AUDITS = [
  json({
    CreationTime: '2026-11-20T08:15:02',
    Id: '00000000-0000-4000-8000-000000000000',
    Operation: 'FileAccessed',
    RecordType: 6,
    Workload: 'SharePoint',
    ClientIP: '203.0.113.9',
    ObjectId: 'https://example.sharepoint.com/claude.ai.docx',
    SiteUrl: 'https://example.sharepoint.com/',
    UserId: 'jdoe@openai.com',
  }),
  json({
    timestamp: ISO,
    Operation: 'Send',
    Workload: 'Exchange',
    ClientIP: '203.0.113.9',
    url: 'https://outlook.example.com/',
    domain: 'openai.com',
  }),
  json({
    timestamp: ISO,
    Operation: 'UserLoggedIn',
    ClientIP: '203.0.113.9',
    Workload: 'AzureActiveDirectory',
    Target: 'openai.com',
    domain: 'openai.com',
  }),
  json({ timestamp: ISO, operation: 'New-TransportRule', client_ip: '203.0.113.9', query: 'openai.com' }),
  json({
    kind: 'admin#reports#activity',
    id: { time: ISO, uniqueQualifier: '1', applicationName: 'login', customerId: 'C0' },
    actor: { email: 'jdoe@openai.com', profileId: '1' },
    ownerDomain: 'openai.com',
    ipAddress: '203.0.113.9',
    events: [{ type: 'login', name: 'login_success' }],
  }),
  json({
    time: ISO,
    event_name: 'authorize',
    actor: 'jdoe@openai.com',
    ip_address: '203.0.113.9',
    app_name: 'ChatGPT',
    domain: 'chatgpt.com',
  }),
  json({
    '@timestamp': 1795162502123,
    action: 'repo.create',
    actor: 'jdoe',
    actor_ip: '203.0.113.9',
    org: 'openai',
    url: 'https://github.com/openai/x',
  }),
  json({
    '@timestamp': 1795162502123,
    action: 'git.clone',
    actor_id: 7,
    client_ip: '203.0.113.9',
    url: 'https://huggingface.co/x',
  }),
  json({
    timestamp: ISO,
    action: 'oauth_application.create',
    actor_ip: '203.0.113.9',
    clientip: '203.0.113.9',
    url: 'https://chatgpt.com/callback',
  }),
  json({
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    auditID: '00000000-0000-4000-8000-000000000001',
    stage: 'ResponseComplete',
    requestURI: '/api/v1/namespaces/openai/pods',
    verb: 'get',
    sourceIPs: ['203.0.113.9'],
    objectRef: { resource: 'pods', name: 'claude.ai' },
    requestReceivedTimestamp: ISO,
  }),
  json({
    timestamp: ISO,
    auditID: 'x',
    stage: 'RequestReceived',
    sourceIP: '203.0.113.9',
    requestURI: '/apis',
    host: 'api.openai.com',
  }),
  json({
    eventVersion: '1.09',
    eventTime: ISO,
    eventSource: 'bedrock.amazonaws.com',
    eventName: 'InvokeModel',
    awsRegion: 'us-east-1',
    sourceIPAddress: '203.0.113.9',
    userAgent: 'aws-sdk',
    tlsDetails: { clientProvidedHostHeader: 'bedrock-runtime.us-east-1.amazonaws.com' },
  }),
  json({
    eventTime: ISO,
    eventName: 'ConsoleLogin',
    sourceIPAddress: '203.0.113.9',
    url: 'https://console.aws.amazon.com/claude.ai',
  }),
  json({
    protoPayload: {
      methodName: 'SetIamPolicy',
      requestMetadata: { callerIp: '203.0.113.9' },
      serviceName: 'aiplatform.googleapis.com',
    },
    timestamp: ISO,
    severity: 'NOTICE',
  }),
  json({ timestamp: ISO, audit_event: 'user_created', remote_addr: '203.0.113.9', domain: 'openai.com' }),
  'ts=1795162502 type=audit src=203.0.113.9 url=https://claude.ai/admin user=admin',
  'ts=1795162502 event=config-change client_ip=203.0.113.9 domain=openai.com by=admin',
  'ts=1795162502 operation=update src=203.0.113.9 fqdn=claude.ai object=blocklist',
  'CEF:0|Acme|Manager|1|7|Configuration changed|3|rt=1795162502000 src=203.0.113.9 suser=admin dhost=mgmt.openai.com request=https://mgmt.openai.com/policy',
  'CEF:0|Microsoft|Azure|1|audit|Audit event|3|rt=1795162502000 src=203.0.113.9 request=https://claude.ai/ cs1Label=Domain cs1=openai.com',
  'LEEF:1.0|Acme|Console|1|AdminAction|src=203.0.113.9\turl=https://claude.ai/allowlist\tusrName=admin',
  '2026-11-20 09:15:02,203.0.113.9,claude.ai,audit,policy changed',
]

const MAIL = [
  'postfix/smtpd[901]: connect from mail.openai.com[203.0.113.9]',
  'postfix/smtpd[901]: 4B1C2: client=mail.openai.com[203.0.113.9], sasl_method=LOGIN, sasl_username=jdoe',
  'postfix/qmgr[902]: 4B1C2: from=<noreply@openai.com>, size=1234, nrcpt=1 (queue active)',
  'postfix/smtp[903]: 4B1C2: to=<jdoe@example.org>, relay=mx.openai.com[203.0.113.9]:25, delay=1, delays=0/0/0/1, dsn=2.0.0, status=sent (250 OK)',
  'postfix/smtpd[901]: NOQUEUE: reject: RCPT from claude.ai[203.0.113.9]: 554 5.7.1; from=<a@claude.ai> to=<b@example.org> proto=ESMTP helo=<claude.ai>',
  'postfix/cleanup[904]: 4B1C2: message-id=<1@openai.com>',
  'sendmail[901]: 3AB: from=<noreply@openai.com>, size=1234, class=0, nrcpts=1, proto=ESMTP, daemon=MTA, relay=mail.openai.com [203.0.113.9]',
  'sendmail[902]: 3AB: to=<jdoe@example.org>, delay=00:00:01, mailer=esmtp, pri=31234, relay=mx.claude.ai. [203.0.113.9], dsn=2.0.0, stat=Sent',
  'sm-mta[903]: 3AC: ruleset=check_rcpt, arg1=<b@example.org>, relay=claude.ai [203.0.113.9], reject=550 5.7.1',
  'dovecot: imap-login: Login: user=<jdoe@openai.com>, method=PLAIN, rip=203.0.113.9, lip=198.51.100.20, mpid=901, TLS, session=<abc>',
  'dovecot: imap-login: Disconnected (auth failed, 1 attempts): user=<jdoe@claude.ai>, method=PLAIN, rip=203.0.113.9, lip=198.51.100.20',
  'dovecot: lmtp(jdoe@openai.com): msgid=<1@openai.com>: saved mail to INBOX',
  'exim[901]: 1abc-00 <= noreply@openai.com H=mail.openai.com [203.0.113.9] P=esmtps S=1234 id=1@openai.com',
  'exim[901]: 1abc-00 => jdoe@example.org R=dnslookup T=remote_smtp H=mx.claude.ai [203.0.113.9] C="250 OK"',
  'time="2026-11-20T08:15:02Z" src=203.0.113.9 senderDomain=openai.com recipient=a@example.org action=deliver domain=openai.com',
  'ts=1795162502 client_ip=203.0.113.9 sender_domain=openai.com domain=openai.com spf=pass',
  'ts=1795162502 src=203.0.113.9 from=noreply@openai.com to=jdoe@example.org host=mail.openai.com dst=198.51.100.20 dport=25',
  'ts=1795162502 protocol=SMTP src=203.0.113.9 dst=198.51.100.20 sni=mx.openai.com',
  'ts=1795162502 app=smtp src=203.0.113.9 dhost=mx.claude.ai',
  'date=2026-11-20 time=09:15:02 type=spam client_ip=203.0.113.9 url=https://chatgpt.com/x recipients=jdoe@example.org',
  json({
    Timestamp: ISO,
    NetworkMessageId: 'x',
    SenderFromDomain: 'openai.com',
    SenderIPv4: '203.0.113.9',
    ClientIP: '203.0.113.9',
    Url: 'https://claude.ai/x',
  }),
  json({ time: ISO, clientIp: '203.0.113.9', senderDomain: 'openai.com', domain: 'openai.com' }),
  json({ timestamp: ISO, type: 'email', src_ip: '203.0.113.9', url: 'https://chatgpt.com/' }),
  json({
    timestamp: ISO,
    event: 'mail_received',
    source_ip: '203.0.113.9',
    sender: 'a@openai.com',
    domain: 'openai.com',
  }),
  json({ timestamp: ISO, category: 'Phish', client_ip: '203.0.113.9', url: 'https://claude.ai/x' }),
  json({ timestamp: ISO, headerFrom: 'openai.com', sourceIp: '203.0.113.9', dkim: 'pass', domain: 'openai.com' }),
  'CEF:0|Proofpoint|TAP|1.0|msgdlv|message delivered|1|rt=1795162502000 src=203.0.113.9 suser=a@openai.com duser=b@example.org request=https://claude.ai/x recipient=b@example.org',
  'CEF:0|Fortinet|FortiMail|7|100|statistics|1|src=203.0.113.9 dhost=mx.openai.com request=https://claude.ai/',
  'CEF:0|Cisco|Email Security|14|1|ESA_CONSOLIDATED|5|src=203.0.113.9 dhost=mail.openai.com cs1Label=Link cs1=https://claude.ai/',
  'LEEF:1.0|Acme|Mail Gateway|1|delivered|src=203.0.113.9\tdhost=mx.openai.com\turl=https://claude.ai/',
  'LEEF:1.0|Acme|Gateway|1|accepted|src=203.0.113.9\tsender=a@openai.com\tdstname=mx.openai.com',
  '2026-11-20T08:15:02.123Z,192.0.2.45,mail.openai.com,198.51.100.20,MBX01,08DC;2026-11-20T08:15:01.000Z;0,MBX01\\Default,SMTP,RECEIVE,123,<1@openai.com>,jdoe@example.org,,2345,1,,,Hello,a@openai.com,a@openai.com,,Incoming,,,,',
  '2026-11-20T08:15:02.123Z,,,192.0.2.45,mx.openai.com,,,STOREDRIVER,DELIVER,124,<1@openai.com>,jdoe@example.org,,2345,1,,,Hello,a@openai.com,,,Originating',
  '2026-11-20 09:15:02,203.0.113.9,openai.com,a@openai.com,b@example.org,delivered',
  '2026-11-20 09:15:02;203.0.113.9;claude.ai;SMTP;250',
]

const WEB_SERVERS = [
  ...['chatgpt.com:443', 'claude.ai', 'site.example.com:443', '-', 'api.openai.com:8443'].map(
    (vhost) => `${vhost} 203.0.113.9 - - ${ACCESS_TIME} "GET /v1 HTTP/1.1" 200 2326 "https://claude.ai/" "Mozilla/5.0"`,
  ),
  ...[
    'GET / HTTP/1.1',
    'POST /v1/chat/completions HTTP/2.0',
    'HEAD /https://claude.ai/ HTTP/1.1',
    'OPTIONS * HTTP/1.1',
    '-',
    '',
  ].map(
    (request) =>
      `203.0.113.9 - jdoe ${ACCESS_TIME} "${request}" 200 2326 "https://chatgpt.com/" "https://openai.com/gptbot"`,
  ),
  `203.0.113.9 - - ${ACCESS_TIME} "GET /?u=https://claude.ai/ HTTP/1.1" 200 1 "https://perplexity.ai/" "x" "claude.ai"`,
  `203.0.113.9 - - ${ACCESS_TIME} "GET / HTTP/1.1" 200 1 "-" "Mozilla/5.0" host=claude.ai upstream=198.51.100.20:80 rt=0.1`,
  `2001:db8::45 - - ${ACCESS_TIME} "GET / HTTP/1.1" 200 1 "https://claude.ai/" "x"`,
  json({
    time: ISO,
    remote_addr: '203.0.113.9',
    host: 'claude.ai',
    request: 'GET / HTTP/1.1',
    status: 200,
    http_referer: 'https://chatgpt.com/',
  }),
  json({
    time: ISO,
    remote_addr: '203.0.113.9',
    server_name: 'claude.ai',
    request_uri: '/',
    request_method: 'GET',
    upstream_addr: '198.51.100.20:80',
  }),
  json({ ts: 1795162502.1, client: '203.0.113.9', host: 'chat.openai.com', method: 'GET', uri: '/v1', status: 200 }),
  json({ timestamp: ISO, clientip: '203.0.113.9', domain: 'shop.openai.com', url: '/cart', method: 'POST' }),
  json({ timestamp: ISO, client_ip: '203.0.113.9', url: 'https://shop.claude.ai/', backend: 'web1', status: 200 }),
  json({ timestamp: ISO, source_ip: '203.0.113.9', vhost: 'claude.ai', url: 'https://claude.ai/cart' }),
  json({
    ClientAddr: '203.0.113.9:51234',
    RequestHost: 'claude.ai',
    RequestPath: '/',
    RequestMethod: 'GET',
    StartUTC: ISO,
    time: ISO,
  }),
  json({
    level: 'info',
    ts: 1795162502.1,
    logger: 'http.log.access',
    request: { remote_ip: '203.0.113.9', client_ip: '203.0.113.9', method: 'GET', host: 'claude.ai', uri: '/' },
    status: 200,
  }),
  json({
    timestamp: 1795162502123,
    formatVersion: 1,
    webaclId: 'arn:aws:wafv2:x',
    action: 'ALLOW',
    httpRequest: { clientIp: '203.0.113.9', country: 'DE', uri: '/', headers: [{ name: 'Host', value: 'claude.ai' }] },
  }),
  json({
    EdgeStartTimestamp: ISO,
    ClientIP: '203.0.113.9',
    ClientRequestHost: 'claude.ai',
    ClientRequestURI: '/',
    ClientRequestMethod: 'GET',
    EdgeResponseStatus: 200,
    RayID: 'x',
    timestamp: ISO,
  }),
  json({
    timestamp: ISO,
    ClientIP: '203.0.113.9',
    Host: 'chatgpt.com',
    RayID: 'x',
    Action: 'block',
    Source: 'firewallManaged',
  }),
  json({
    httpRequest: { requestMethod: 'GET', requestUrl: 'https://claude.ai/', remoteIp: '203.0.113.9', status: 200 },
    timestamp: ISO,
  }),
  json({
    log: '203.0.113.9 - - [20/Nov/2026:09:15:02 +0100] "GET / HTTP/1.1" 200 1',
    stream: 'stdout',
    time: ISO,
    kubernetes: { host: 'node.openai.com' },
  }),
  'time=2026-11-20T08:15:02Z remote_addr=203.0.113.9 host=claude.ai method=GET uri=/v1 status=200',
  'time=2026-11-20T08:15:02Z client=203.0.113.9 domain=shop.openai.com request="GET /cart HTTP/1.1" status=200',
  'time=2026-11-20T08:15:02Z client_ip=203.0.113.9 url=https://claude.ai/ upstream_addr=198.51.100.20:80 status=200',
  'at=info method=GET path="/" host=claude.ai request_id=x fwd="203.0.113.9" dyno=web.1 connect=1ms service=9ms status=200 bytes=1',
  'service=nginx client=203.0.113.9 server=claude.ai url=https://claude.ai/x method=GET',
  'haproxy[901]: 203.0.113.9:51234 [20/Nov/2026:09:15:02.123] https~ web/claude.ai 0/0/1/9/10 200 2326 - - ---- 1/1/0/0/0 0/0 {chat.openai.com} "GET / HTTP/1.1"',
  'haproxy[901]: Connect from 203.0.113.9:51234 to 198.51.100.20:443 (claude.ai/HTTP)',
  'https 2026-11-20T08:15:02.123456Z app/openai-lb/1 203.0.113.9:51234 198.51.100.20:80 0.0 0.1 0.0 200 200 34 366 "GET https://claude.ai:443/ HTTP/1.1" "Mozilla/5.0 (X11; Linux; x64)" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:x "Root=1" "claude.ai" "arn:aws:y" 0 2026-11-20T08:15:02.000000Z "forward" "-" "-" "198.51.100.20:80" "200" "-" "-"',
  '2026-11-20\t08:15:02\tFRA50-C1\t2326\t203.0.113.9\tGET\td111.cloudfront.net\t/index.html\t200\thttps://chatgpt.com/\tMozilla/5.0\t-\t-\tHit\tx\tclaude.ai\thttps',
  '2026-11-20 08:15:02 198.51.100.20 GET /default.aspx - 443 - 203.0.113.9 Mozilla/5.0 https://chatgpt.com/ 200 0 0 15',
  '2026-11-20T08:15:02Z,203.0.113.9,GET,claude.ai,/index.html,200,2326',
  '2026-11-20T08:15:02Z,203.0.113.9,/index.html,200,https://chatgpt.com/',
  'CEF:0|Imperva|WAF|1|Normal|Normal|0|start=1795162502000 src=203.0.113.9 request=https://claude.ai/ requestMethod=GET dhost=claude.ai',
  'CEF:0|F5|ASM|16|200|Illegal URL|5|rt=1795162502000 src=203.0.113.9 dhost=shop.openai.com request=/cart',
  'CEF:0|Acme|Balancer|1|1|access|1|src=203.0.113.9 virtualServer=vs1 dhost=claude.ai request=https://claude.ai/',
]

const SYSTEMS = [
  'dhcpd: DHCPACK on 192.0.2.45 to 00:53:00:00:00:2a (pc-7.openai.com) via eth0',
  'dnsmasq-dhcp[901]: DHCPACK(eth0) 192.0.2.45 00:53:00:00:00:2a claude.ai',
  'op=DHCPACK ip=192.0.2.45 mac=00:53:00:00:00:2a hostname=pc-7.openai.com lease=3600',
  'ts=1795162502 event=lease client_ip=192.0.2.45 mac=00:53:00:00:00:2a domain=openai.com',
  'ts=1795162502 service=dhcp src=192.0.2.45 fqdn=pc-7.claude.ai',
  '10,11/20/26,09:15:02,Assign,192.0.2.45,pc-7.openai.com,00530000002A,,123456,0,,,,,,,,,0',
  '11,11/20/26,09:15:02,Renew,192.0.2.45,claude.ai,005300-AF,DHCP,123457,0,,,,,,,,,0',
  '2026-11-20 09:15:02,192.0.2.45,pc-7.openai.com,00:53:00:00:00:2a',
  json({ timestamp: ISO, type: 'dhcp', client_ip: '192.0.2.45', fqdn: 'pc-7.openai.com', query: 'pc-7.openai.com' }),
  json({ ts: ISO, ip: '192.0.2.45', hostname: 'pc-7.claude.ai', mac: '00:53:00:00:00:2a' }),
  'snmptrapd[901]: 2026-11-20 09:15:02 claude.ai [UDP: [203.0.113.9]:161->[198.51.100.20]:162]: DISMAN-EVENT-MIB::sysUpTimeInstance = Timeticks: (1) 0:00:00.01',
  'ts=1795162502 type=trap src=203.0.113.9 sysName=sw1.openai.com domain=openai.com',
  'kernel: [UFW BLOCK] IN=eth0 OUT= MAC=00:53 SRC=203.0.113.9 DST=198.51.100.20 LEN=60 PROTO=TCP SPT=51234 DPT=443',
  'systemd[1]: Started claude.ai.service - https://claude.ai.',
  'systemd-resolved[901]: Using degraded feature set UDP instead of UDP+EDNS0 for DNS server 198.51.100.53.',
  'CRON[901]: (root) CMD (curl -s https://api.openai.com/v1/models >/dev/null)',
  json({
    '@timestamp': ISO,
    message: 'Started openai.service',
    host: { name: 'web.openai.com', ip: ['192.0.2.45'] },
    log: { syslog: { hostname: 'web.openai.com' } },
  }),
  json({
    _SOURCE_REALTIME_TIMESTAMP: '1795162502123456',
    _HOSTNAME: 'claude.ai',
    MESSAGE: 'x',
    SYSLOG_IDENTIFIER: 'systemd',
    timestamp: ISO,
  }),
  json({
    version: '1.1',
    host: 'web.claude.ai',
    short_message: 'started',
    timestamp: 1795162502.1,
    level: 6,
    client: '192.0.2.45',
    dst: '198.51.100.20',
  }),
  json({
    timestamp: ISO,
    hostname: 'web.openai.com',
    src_ip: '192.0.2.45',
    dest_ip: '198.51.100.20',
    dest_port: 443,
    action: 'allow',
  }),
  json({
    timestamp: ISO,
    'host.name': 'pc-7.openai.com',
    'source.ip': '192.0.2.45',
    'destination.ip': '198.51.100.20',
  }),
  json({ timestamp: ISO, beat: { hostname: 'claude.ai' }, data: { hostname: 'claude.ai', src: '192.0.2.45' } }),
  json({ time: ISO, host: 'fw.openai.com', src: '192.0.2.45', dst: '198.51.100.20', dport: 443, severity: 'info' }),
  json({
    time: 1795162502,
    host: 'web.openai.com',
    sourcetype: 'access_combined',
    source: '192.0.2.45',
    event: { hostname: 'claude.ai', client: '192.0.2.45' },
  }),
  json({ time: 1795162502, sourcetype: 'WinEventLog', event: { host: 'dc1.openai.com', url: 'https://claude.ai/' } }),
  json({
    timestamp: ISO,
    dns: { question: { name: 'claude.ai' } },
    process: { name: 'chrome.exe' },
    host: { ip: '192.0.2.45' },
  }),
  json({ timestamp: ISO, tls: { sni: 'claude.ai' }, observer: { name: 'sensor' } }),
  json({ timestamp: ISO, devid: 'x', hostname: 'claude.ai' }),
  json({ timestamp: ISO, logtype: 'dns', hostname: 'dns1.openai.com', client_ip: '192.0.2.45' }),
  'time=2026-11-20T08:15:02Z hostname=fw.openai.com src=192.0.2.45 dst=198.51.100.20 dport=443 action=allow',
  'time=2026-11-20T08:15:02Z host=fw.openai.com level=info src=192.0.2.45 dst=198.51.100.20 dport=443 action=allow',
  'time=2026-11-20T08:15:02Z host=fw.openai.com src=192.0.2.45 dst=198.51.100.20 dport=443',
  'time=2026-11-20T08:15:02Z devname=fw1 host=fw.openai.com src=192.0.2.45 dst=198.51.100.20 dport=443',
  '2026-11-20 09:15:02\thost=fw.openai.com\tsrcip=192.0.2.45\thostname=claude.ai\tdstip=198.51.100.20',
  '2026-11-20 09:15:02\tclientip=192.0.2.45\thostname=pc-7.openai.com\tsite=claude.ai',
  'ts=1795162502 servername=claude.ai ip=192.0.2.45 cpu=7 mem=80',
  'ts=1795162502 computer=pc-7.openai.com ip=192.0.2.45 domain=openai.com agent=7.1',
  'ts=1795162502 hostip=192.0.2.45 url=https://updates.openai.com/ version=7',
  'ts=1795162502 user=jdoe srcip=203.0.113.9 tunnelip=10.0.0.5 domain=openai.com action=tunnel-up',
  'ts=1795162502 event=vpn-connected client=203.0.113.9 dhost=vpn.openai.com user=jdoe',
  'openvpn[901]: jdoe/203.0.113.9:51234 MULTI: Learn: 10.8.0.6 -> jdoe/203.0.113.9:51234 claude.ai',
  '2026-11-20 09:15:02,203.0.113.9,vpn.claude.ai,VPN,connected',
  json({
    timestamp: ISO,
    event_simpleName: 'ProcessRollup2',
    event: 'ProcessRollup2',
    aip: '203.0.113.9',
    clientip: '203.0.113.9',
    CommandLine: 'curl https://claude.ai',
    domain: 'openai.com',
  }),
  json({
    timestamp: ISO,
    type: 'process',
    source_ip: '192.0.2.45',
    url: 'https://chatgpt.com/ChatGPT.dmg',
    parentProcess: 'explorer.exe',
  }),
  json({
    timestamp: ISO,
    category: 'malware',
    clientip: '192.0.2.45',
    dest_host: 'pc-7.openai.com',
    file: 'claude.ai',
  }),
  'CEF:0|Acme|EDR|1|7|Suspicious process|8|rt=1795162502000 src=192.0.2.45 dhost=pc-7.openai.com fname=claude.ai.exe',
  'CEF:0|Acme|EDR|1|7|alert|8|rt=1795162502000 src=192.0.2.45 cs4=https://claude.ai/alerts/7 cs4Label=link',
  'CEF:0|Acme|XDR|1|7|alert|8|rt=1795162502000 src=192.0.2.45 cs1Label=Link cs1=https://portal.openai.com/7',
  'CEF:0|Acme|XDR|1|7|alert|8|rt=1795162502000 src=192.0.2.45 shost=claude.ai dvchost=xdr.openai.com deviceExternalId=chatgpt.com',
  'CEF:0|Acme|Agent|1|7|scan finished|1|rt=1795162502000 dhost=pc-7.openai.com request=https://claude.ai/',
  'CEF:0|Acme|Antivirus|1|7|updated|1|rt=1795162502000 src=192.0.2.45 dhost=updates.openai.com',
  'LEEF:1.0|Acme|Endpoint|1|ProcessStart|src=192.0.2.45\tdhost=pc-7.openai.com\turl=https://claude.ai/',
  'LEEF:1.0|Acme|Agent|1|status|identHostName=claude.ai\thostname=claude.ai\tsrc=192.0.2.45',
  '2026-11-20T08:15:02Z,198.51.100.20,192.0.2.45,claude.ai',
  '2026-11-20T08:15:02Z;10.0.0.53;10.0.0.5;api.openai.com;A',
  '2026-11-20 09:15:02|203.0.113.1|192.0.2.45|198.51.100.20|claude.ai|allowed',
  '2026-11-20T08:15:02Z,pc-7,claude.ai,allowed',
]

const FAMILIES = { WINDOWS, SIGN_INS, AUDITS, MAIL, WEB_SERVERS, SYSTEMS, INBOUND }

for (const [family, lines] of Object.entries(FAMILIES)) {
  t.test(`${family}: no line is an event, from a new source or a known source`, async (t) => {
    const known = new MessageReader()
    for (const line of lines) {
      for (const reader of [new MessageReader(), known]) {
        const { verdict, format, host, client } = reader.read(line)
        if (verdict === 'event') t.fail(`${line}: ${format} ${client} ${host}`)
      }
    }
    t.pass(`${lines.length} lines`)
  })
}

t.test('a web server is recognized by the columns of its log', async (t) => {
  for (const [directives, row] of [
    [
      '#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer)',
      '2026-11-20\t08:15:02\tFRA50-C1\t2326\t203.0.113.9\tGET\tclaude.ai\t/index.html\t200\thttps://chatgpt.com/',
    ],
    [
      '#Fields: date time s-sitename s-ip cs-method cs-uri-stem c-ip cs-host sc-status sc-substatus sc-win32-status',
      '2026-11-20 08:15:02 W3SVC1 198.51.100.20 GET /default.aspx 203.0.113.9 claude.ai 200 0 0',
    ],
    [
      '#Software: Microsoft Exchange Server\n#Fields: date time c-ip cs-host',
      '2026-11-20 08:15:02 203.0.113.9 mail.openai.com',
    ],
  ] as const) {
    const reader = new MessageReader()
    for (const directive of directives.split('\n')) t.equal(reader.read(directive).verdict, 'skip', directive)
    t.equal(reader.read(row).verdict, 'noDomain', row)
  }
})

t.test('requests of clients in the same generic shapes are events', async (t) => {
  for (const [line, client = '192.0.2.45'] of [
    [json({ timestamp: ISO, src_ip: '192.0.2.45', url: 'https://claude.ai/new', action: 'allowed' })],
    [
      json({
        '@timestamp': ISO,
        source: { ip: '192.0.2.45' },
        url: { full: 'https://claude.ai/' },
        host: { name: 'proxy.example.org' },
      }),
    ],
    [json({ '@timestamp': ISO, source: { ip: '192.0.2.45' }, dns: { question: { name: 'claude.ai' } } })],
    [json({ time: ISO, client: '192.0.2.45', qname: 'claude.ai', Hostname: 'dns1.example.org' })],
    [
      json({
        time: ISO,
        Source: '192.0.2.45',
        QNAME: 'claude.ai.',
        EventID: 256,
        Channel: 'Microsoft-Windows-DNSServer/Analytical',
        Computer: 'dns1.openai.com',
      }),
    ],
    [json({ ts: 1795162502, clientip: '192.0.2.45', sni: 'claude.ai', dest_ip: '198.51.100.20' })],
    [json({ ts: 1795162502, srcip: '192.0.2.45', dsthost: 'claude.ai', user: 'jdoe', category: 'Generative AI' })],
    [json({ ts: 1795162502, client_ip: '192.0.2.45', domain: 'claude.ai', action: 'blocked', user: 'jdoe' })],
    [json({ ts: 1795162502, client_ip: '192.0.2.45', domain: 'claude.ai', type: 'dns' })],
    [json({ ts: 1795162502, src: '192.0.2.45', method: 'CONNECT', host: 'claude.ai', port: 443 })],
    [json({ Datetime: ISO, SrcIP: '192.0.2.45', QueryName: 'claude.ai', ResourceRecordType: 'A' })],
    [json({ T: ISO, QH: 'claude.ai', IP: '192.0.2.45', QT: 'A' })],
    ['ts=1795162502 client=192.0.2.45 qname=claude.ai hostname=ns1.openai.com'],
    ['ts=1795162502 src=192.0.2.45 dst=198.51.100.20 sni=claude.ai action=allow'],
    ['ts=1795162502 src=192.0.2.45 method=CONNECT host=claude.ai dport=443'],
    ['ts=1795162502 client_ip=192.0.2.45 method=CONNECT url=claude.ai:443 level=info'],
    ['ts=1795162502 client_ip=192.0.2.45 user=jdoe domain=claude.ai action=blocked'],
    ['ts=1795162502 source_ip=192.0.2.45 request="GET https://claude.ai/auth/login HTTP/1.1" status=200'],
    ['CEF:0|Acme|Web Gateway|1|1|access|1|rt=1795162502000 src=192.0.2.45 request=https://claude.ai/ act=allowed'],
    ['CEF:0|Acme|DNS Firewall|1|1|query|1|rt=1795162502000 src=192.0.2.45 destinationDnsDomain=claude.ai'],
    [
      'CEF:0|Acme|Web Gateway|1|1|access|1|rt=1795162502000 src=192.0.2.45 cs1Label=URL cs1=https://claude.ai/ cs4Label=link cs4=https://portal.example.org/',
    ],
    ['LEEF:1.0|Acme|Proxy|1|allowed|src=192.0.2.45\tdstname=claude.ai\tdomain=corp.example.org'],
    [`192.0.2.45 - - ${ACCESS_TIME} "CONNECT claude.ai:443 HTTP/1.1" 200 39 "-" "x"`],
    [`proxy.example.org:3128 192.0.2.45 - - ${ACCESS_TIME} "GET http://claude.ai/ HTTP/1.1" 200 39 "-" "x"`],
    ['2026-11-20T08:15:02Z,192.0.2.45,claude.ai'],
    ['2026-11-20 09:15:02;192.0.2.45;jdoe@example.org;claude.ai;allowed;443'],
    ['2026-11-20 09:15:02|192.0.2.45|GET|https://claude.ai/|200'],
  ] as const) {
    const read = new MessageReader().read(line)
    t.match(read, { verdict: 'event', host: 'claude.ai', client }, line)
  }
})

/** Keys of all roles but the client's, with and without a meaning. */
const KEYS_WITHOUT_CLIENT =
  'host hostname url uri domain qname query sni dhost dsthost dstname fqdn server_name destination request link name dst dstip dport method action user type logtype message level time computer device dvchost shost referer site x'.split(
    ' ',
  )
const VALUES = ['claude.ai', 'https://claude.ai/', '192.0.2.45', '2026-11-20T08:15:02Z', '443', 'CONNECT', 'dns', 'a']

t.test('a record of no known product and without a key of the client is never an event', async () => {
  const pair = fc.tuple(fc.constantFrom(...KEYS_WITHOUT_CLIENT), fc.constantFrom(...VALUES))
  const format = fc.constantFrom('kv', 'tabs', 'json', 'nested', 'cef', 'leef')
  fc.assert(
    fc.property(format, fc.array(pair, { minLength: 3, maxLength: 8 }), (kind, pairs) => {
      return new MessageReader().read(recordOf(kind, pairs)).verdict !== 'event'
    }),
    {
      numRuns: 3000,
      examples: [
        [
          'kv',
          [
            ['time', 'claude.ai'],
            ['type', 'dns'],
            ['qname', 'claude.ai'],
            ['host', 'claude.ai'],
          ],
        ],
      ],
    },
  )
})

function recordOf(kind: string, pairs: readonly (readonly [string, string])[]): string {
  const texts = pairs.map(([key, value]) => `${key}=${value}`)
  switch (kind) {
    case 'kv':
      return `ts=1795162502 ${texts.join(' ')}`
    case 'tabs':
      return `2026-11-20 09:15:02\t${texts.join('\t')}`
    case 'json':
      return json({ ts: 1795162502, ...Object.fromEntries(pairs) })
    case 'nested':
      return json({ ts: 1795162502, event: Object.fromEntries(pairs) })
    case 'cef':
      return `CEF:0|Acme|Gateway|1|1|access|1|${texts.join(' ')}`
    default:
      return `LEEF:1.0|Acme|Gateway|1|access|${texts.join('\t')}`
  }
}
