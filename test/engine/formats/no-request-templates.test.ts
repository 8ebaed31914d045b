import t from 'tap'
import { MessageReader } from '../../support/log-rows.ts'

/*
 * Templates of records that are no client's request to another host, filled with varied values:
 * $N is a name of a platform, $C and $S are addresses, $U is a user, $P a port, $E an epoch, $D an
 * ISO time, $K a time of a web server's log, $B a time of RFC 3164.
 */
const TEMPLATES: Readonly<Record<string, readonly string[]>> = {
  // https://nginx.org/en/docs/http/ngx_http_log_module.html
  // https://httpd.apache.org/docs/2.4/logs.html
  'web server': [
    '$C - $U [$K] "GET /$N HTTP/1.1" 200 $P "https://$N/" "Mozilla/5.0"',
    '$C - - [$K] "POST /v1/chat HTTP/2.0" 502 0 "-" "https://$N/bot"',
    '$N $C - - [$K] "GET /index.html HTTP/1.1" 304 - "https://$N/" "x"',
    '$N:443 $C - $U [$K] "HEAD / HTTP/1.1" 200 $P "-" "x"',
    '[$D] [core:error] [pid $P] [client $C:$P] File does not exist: /srv/$N, referer: https://$N/',
    '{"time":"$D","remote_addr":"$C","request":"GET /a HTTP/1.1","status":"200","http_host":"$N","http_referer":"https://$N/"}',
    '{"time":"$D","remote_addr":"$C","request_uri":"/a","host":"$N","upstream_addr":"$S:$P","status":200}',
  ],
  // https://docs.haproxy.org/2.8/configuration.html, section 8
  // https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html
  // https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html
  'load balancer': [
    '$B lb haproxy[$P]: $C:$P [20/Nov/2026:09:15:02.123] https~ app/$N 0/0/1/2/3 200 $P - - ---- 1/1/0/0/0 0/0 {$N} "GET / HTTP/1.1"',
    'https $D app/web/1a2b $C:$P $S:80 0.086 0.048 0.037 200 200 0 57 "GET https://$N:443/ HTTP/1.1" "curl/8" ECDHE TLSv1.2 arn:aws:x "Root=1-5" "$N" "arn:aws:y" 1 $D "forward" "-" "-"',
    '79a59d awsexamplebucket1 [$K] $C 79a59d 3E57427F REST.GET.OBJECT $N "GET /$N HTTP/1.1" 200 - 113 - 7 - "https://$N/" "S3Console/0.4" - x SigV4 ECDHE AuthHeader $N TLSv1.2',
  ],
  // https://docs.aws.amazon.com/awscloudtrail/latest/userguide/cloudtrail-event-reference.html
  // https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/
  audit: [
    '{"eventVersion":"1.08","userIdentity":{"type":"IAMUser","userName":"$U"},"eventTime":"$D","eventSource":"$N","eventName":"GetObject","sourceIPAddress":"$C","userAgent":"$N","requestParameters":{"host":"$N","url":"https://$N/"}}',
    '{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":"ResponseComplete","requestURI":"/api/v1/$N","verb":"get","user":{"username":"$U"},"sourceIPs":["$C"],"requestReceivedTimestamp":"$D","objectRef":{"name":"$N"}}',
    'type=SYSCALL msg=audit($E.123:$P): arch=c000003e syscall=59 success=yes auid=1000 exe="/usr/bin/curl" key="$N"',
    'type=USER_LOGIN msg=audit($E.123:$P): pid=$P uid=0 auid=1000 ses=1 msg=\'op=login acct="$U" exe="/usr/sbin/sshd" hostname=$N addr=$C terminal=ssh res=success\'',
    '{"@timestamp":$E000,"action":"repo.create","actor":"$U","actor_ip":"$C","repo":"$N","url":"https://$N/"}',
  ],
  // https://developer.okta.com/docs/reference/api/system-log/
  // https://learn.microsoft.com/en-us/graph/api/resources/signin
  'sign-in': [
    '{"published":"$D","eventType":"user.session.start","actor":{"alternateId":"$U@$N"},"client":{"ipAddress":"$C"},"target":[{"displayName":"$N"}],"debugContext":{"debugData":{"url":"https://$N/"}}}',
    '{"createdDateTime":"$D","userPrincipalName":"$U@$N","appDisplayName":"$N","ipAddress":"$C","resourceDisplayName":"$N","conditionalAccessStatus":"success"}',
    '$B gw sshd[$P]: Accepted publickey for $U from $C port $P ssh2: $N',
    '$B gw sshd[$P]: Failed password for invalid user $N from $C port $P ssh2',
    '$B gw sudo: $U : TTY=pts/0 ; PWD=/home ; USER=root ; COMMAND=/usr/bin/curl https://$N/',
    '$B vpn openvpn[$P]: $U/$C:$P MULTI: primary virtual IP for $U: $S $N',
    'date=2026-11-20 time=09:15:02 logid="0101039424" type="event" subtype="vpn" remip=$C user="$U" dst_host="$N" msg="SSL tunnel established"',
  ],
  // https://www.postfix.org/postconf.5.html
  // https://learn.microsoft.com/en-us/exchange/mail-flow/transport-logs/message-tracking
  mail: [
    '$B mx postfix/smtpd[$P]: connect from mail.$N[$C]',
    '$B mx postfix/smtp[$P]: 4F1: to=<$U@$N>, relay=mx.$N[$S]:25, delay=1, dsn=2.0.0, status=sent (250 ok)',
    '$B mx postfix/smtpd[$P]: NOQUEUE: reject: RCPT from $N[$C]: 554 blocked; from=<$U@$N> to=<a@$N> proto=ESMTP helo=<$N>',
    '$B mx dovecot: imap-login: Login: user=<$U@$N>, method=PLAIN, rip=$C, lip=$S, TLS',
    '$D,$C,$N,$S,mx1,x,SMTP,RECEIVE,$P,<a@$N>,x,$U@$N,,1234,1,,,Hello,b@$N,b@$N',
  ],
  // https://learn.microsoft.com/en-us/windows/security/threat-protection/auditing/event-4624
  windows: [
    '{"TimeCreated":"$D","EventID":4624,"Computer":"$N","Channel":"Security","TargetUserName":"$U","TargetDomainName":"$N","IpAddress":"$C","IpPort":"$P"}',
    '{"TimeCreated":"$D","EventID":4769,"Computer":"$N","Channel":"Security","ServiceName":"HTTP/$N","IpAddress":"$C"}',
    '{"TimeCreated":"$D","EventID":5156,"Computer":"$N","Channel":"Security","SourceAddress":"$C","DestAddress":"$S","DestPort":"$P"}',
    '{"UtcTime":"$D","EventID":1,"Computer":"$N","Channel":"Microsoft-Windows-Sysmon/Operational","CommandLine":"curl https://$N/","User":"$U","ParentImage":"$N"}',
  ],
  // https://developers.cloudflare.com/logs/reference/log-fields/zone/http_requests/
  // https://docs.aws.amazon.com/waf/latest/developerguide/logging-fields.html
  'WAF and CDN': [
    '{"EdgeStartTimestamp":"$D","ClientIP":"$C","ClientRequestHost":"$N","ClientRequestURI":"/a","ClientRequestReferer":"https://$N/","EdgeResponseStatus":200,"RayID":"7a$P"}',
    '{"timestamp":$E000,"formatVersion":1,"webaclId":"arn:aws:x","action":"ALLOW","httpRequest":{"clientIp":"$C","headers":[{"name":"Host","value":"$N"}],"uri":"/","host":"$N","httpMethod":"GET"}}',
    'CEF:0|Acme|WAF|1|1|attack|5|rt=$E000 src=$C dst=$S dhost=$N request=/login requestMethod=GET app=waf',
    '$B waf modsecurity: [client $C] ModSecurity: Access denied with code 403 [hostname "$N"] [uri "/"] [unique_id "$P"]',
  ],
  // https://docs.aws.amazon.com/vpc/latest/userguide/flow-logs-records-examples.html
  'network and endpoint': [
    '2 123456789010 eni-1235b8ca $C $S $P 443 6 20 4249 $E $E ACCEPT OK',
    '$B fw dhcpd[$P]: DHCPACK on $C to 02:00:5e:00:53:01 ($N) via eth0',
    '$B fw dnsmasq-dhcp[$P]: DHCPACK(br0) $C 02:00:5e:00:53:01 $N',
    '$B fw kernel: IN=eth0 OUT= SRC=$C DST=$S LEN=60 TTL=52 PROTO=TCP SPT=$P DPT=443 PREFIX=$N',
    '{"timestamp":"$D","event_simpleName":"ProcessRollup2","ComputerName":"$N","LocalAddressIP4":"$C","CommandLine":"curl https://$N/","UserName":"$U"}',
    '{"Timestamp":"$D","DeviceName":"$N","ActionType":"ProcessCreated","FileName":"$N","ProcessCommandLine":"curl https://$N/","LocalIP":"$C","AccountName":"$U"}',
  ],
}

const NAMES = ['claude.ai', 'chatgpt.com', 'api.openai.com', 'gemini.google.com', 'copilot.microsoft.com']
const NUMBERS = Array.from({ length: 25 }).keys()
const VALUES = [...NUMBERS].flatMap((number) => NAMES.map((name) => ({ name, number })))

/** Each value changes in its own rhythm, so that columns are not learned as constant. */
function fill(template: string, name: string, number: number): string {
  const second = String(number % 60).padStart(2, '0')
  const values: Readonly<Record<string, string>> = {
    N: name,
    C: number % 3 === 0 ? `203.0.113.${number + 1}` : `192.0.2.${number + 1}`,
    S: `198.51.100.${(number % 7) + 1}`,
    U: `user${number % 11}`,
    P: String(1024 + number * 37),
    E: String(1795162502 + number),
    D: `2026-11-20T08:15:${second}Z`,
    K: `20/Nov/2026:09:15:${second} +0100`,
    B: `Nov 20 09:15:${second}`,
  }
  return template.replace(/\$([NCSUPEDKB])/g, (_, key: string) => values[key] ?? '')
}

for (const [family, templates] of Object.entries(TEMPLATES)) {
  t.test(`${family}: no record is an event, whether first or after others of its source`, async (t) => {
    for (const template of templates) {
      const source = new MessageReader()
      const events = VALUES.map(({ name, number }) => fill(template, name, number)).filter(
        (line) => source.read(line).verdict === 'event' || new MessageReader().read(line).verdict === 'event',
      )
      t.same(events.slice(0, 1), [], template)
    }
  })
}
