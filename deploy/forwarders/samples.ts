/**
 * A log line of a device, and what the service reads from it. Shown in docs/collect/, and tested.
 */
export interface Sample {
  /** The family in the specification. Only in the first sample of a family. */
  readonly family: string
  readonly device: string
  /** The id of the format that recognizes it. */
  readonly format: string
  /** The line, after its header lines, if any. */
  readonly lines: readonly string[]
  readonly host: string
  readonly client: string
}

/** Addresses are from RFC 5737, all other data is fictitious. In the order of the specification. */
export const SAMPLES: readonly Sample[] = [
  {
    family: 'Next-generation firewall, CSV',
    device: 'PAN-OS, URL filtering',
    format: 'firewall-csv',
    lines: [
      '<14>Nov 20 09:15:02 pa-1 1,2026/11/20 09:15:02,007951000012345,THREAT,url,2817,2026/11/20 09:15:01,192.0.2.45,198.51.100.20,203.0.113.7,198.51.100.20,allow-web,corp\\jdoe,,ssl,vsys1,trust,untrust,ethernet1/2,ethernet1/1,posture,2026/11/20 09:15:02,81234,1,51514,443,32011,443,0x40b000,tcp,alert,"api.openai.com:443/",(9999),artificial-intelligence,informational,client-to-server',
    ],
    host: 'api.openai.com',
    client: '192.0.2.45',
  },
  {
    family: '',
    device: 'PAN-OS, decryption',
    format: 'firewall-csv',
    lines: [
      '<14>Nov 20 09:17:00 pa-1 1,2026/11/20 09:17:00,007951000012345,DECRYPTION,0,2817,2026/11/20 09:17:00,192.0.2.45,198.51.100.20,203.0.113.7,198.51.100.20,allow-web,,,ssl,vsys1,,,,,,,,,51600,443,,,,tcp,allow,N/A,,,,,,Client_Hello,,TLS1.3,,,,,,,,,,,,,,,,,,,,,*.anthropic.com,,,api.anthropic.com,',
    ],
    host: 'api.anthropic.com',
    client: '192.0.2.45',
  },
  {
    family: 'Firewall, key=value or CSV',
    device: 'FortiGate, web filter',
    format: 'firewall-kv',
    lines: [
      '<189>date=2026-11-20 time=09:15:02 devname="fgt-1" devid="FGT60FTK00000001" eventtime=1795162502123456789 tz="+0100" logid="0317013312" type="utm" subtype="webfilter" eventtype="ftgd_allow" level="notice" vd="root" policyid=7 srcip=192.0.2.46 srcport=51234 dstip=198.51.100.20 dstport=443 proto=6 service="HTTPS" hostname="chatgpt.com" profile="default" action="passthrough" url="https://chatgpt.com/" direction="outgoing"',
    ],
    host: 'chatgpt.com',
    client: '192.0.2.46',
  },
  {
    family: '',
    device: 'FortiGate, DNS filter, CSV',
    format: 'firewall-kv',
    lines: [
      'date=2026-11-20,time=09:15:03,logid="1501054802",type="dns",subtype="dns-response",vd="root",eventtime=1795162503,srcip=192.0.2.46,srcport=50777,dstip=192.0.2.53,dstport=53,proto=17,qname="api.mistral.ai",qtype="A",ipaddr="198.51.100.9, 198.51.100.10",action="pass"',
    ],
    host: 'api.mistral.ai',
    client: '192.0.2.46',
  },
  {
    family: 'Open-source firewall',
    device: 'pfSense and OPNsense, Unbound',
    format: 'unbound',
    lines: ['[3120:0] info: 192.0.2.47 api.cohere.com. A IN'],
    host: 'api.cohere.com',
    client: '192.0.2.47',
  },
  {
    family: '',
    device: 'pfBlockerNG, dns_reply.log',
    format: 'open-firewall-csv',
    lines: ['DNS-reply,2026-11-20 09:15:04,reply,A,A,300,gemini.google.com,192.0.2.47,198.51.100.77,US'],
    host: 'gemini.google.com',
    client: '192.0.2.47',
  },
  {
    family: '',
    device: 'pfBlockerNG, dnsbl.log',
    format: 'open-firewall-csv',
    lines: ['DNSBL-python,Nov 20 09:15:02,api.deepseek.com,192.0.2.47,Python,DNSBL,DNSBL_AI,deepseek.com,AI_feed,+,A'],
    host: 'api.deepseek.com',
    client: '192.0.2.47',
  },
  {
    family: 'Forward proxy',
    device: 'Squid, native',
    format: 'proxy-native',
    lines: [
      '1795162502.119    318 192.0.2.48 TCP_TUNNEL/200 6120 CONNECT api.anthropic.com:443 jdoe HIER_DIRECT/198.51.100.20 -',
    ],
    host: 'api.anthropic.com',
    client: '192.0.2.48',
  },
  {
    family: '',
    device: 'Squid, common',
    format: 'proxy-common',
    lines: [
      '192.0.2.48 - jdoe [20/Nov/2026:09:15:02 +0100] "CONNECT huggingface.co:443 HTTP/1.1" 200 39 TCP_TUNNEL:HIER_DIRECT',
    ],
    host: 'huggingface.co',
    client: '192.0.2.48',
  },
  {
    family: 'Windows DNS server',
    device: 'debug log',
    format: 'windows-dns',
    lines: [
      '11/20/2026 9:15:02 AM 0A14 PACKET  00000000041C20D0 UDP Rcv 192.0.2.49      71aa   Q [0001   D   NOERROR] A      (3)api(6)openai(3)com(0)',
    ],
    host: 'api.openai.com',
    client: '192.0.2.49',
  },
  {
    family: 'DNS server, BIND query log',
    device: 'BIND 9',
    format: 'bind-query',
    lines: [
      '2026-11-20T08:15:02.123Z queries: info: client @0x7fb1c0004e10 192.0.2.50#40404 (claude.ai): query: claude.ai IN A +E(0)K (192.0.2.53)',
    ],
    host: 'claude.ai',
    client: '192.0.2.50',
  },
  {
    family: 'Cloud web gateway, CSV',
    device: 'Zscaler, web log',
    format: 'zscaler',
    lines: [
      '"Fri Nov 20 08:15:02 2026","jdoe@example.com","HTTPS","chatgpt.com/","Allowed","ChatGPT","AI and ML Applications","1212","9800","41","58","Business Use","Information Technology","AI and ML Apps","None","None","0","None","None","HQ","Sales, EMEA","192.0.2.51","198.51.100.20","POST","200","Mozilla/5.0","None","None","None","Other","None","jdoe","PC-7","N/A"',
    ],
    host: 'chatgpt.com',
    client: '192.0.2.51',
  },
  {
    family: '',
    device: 'Umbrella, DNS',
    format: 'umbrella',
    lines: [
      '"2026-11-20 08:15:02","PC-7","PC-7","192.0.2.51","203.0.113.7","Allowed","1 (A)","NOERROR","api.openai.com.","Generative AI,Application","Anyconnect Roaming Client","Anyconnect Roaming Client",""',
    ],
    host: 'api.openai.com',
    client: '192.0.2.51',
  },
  {
    family: '',
    device: 'Umbrella, proxy',
    format: 'umbrella',
    lines: [
      '"2026-11-20 08:15:03","PC-7","192.0.2.51","203.0.113.7","198.51.100.20","application/json","ALLOWED","https://claude.ai/api/append_message","","Mozilla/5.0","200","1910","8204","7777","","Generative AI"',
    ],
    host: 'claude.ai',
    client: '192.0.2.51',
  },
  {
    family: 'Any CSV',
    device: 'with headings',
    format: 'any-csv',
    lines: ['Timestamp;Client;Requested Domain;Action', '2026-11-20T08:15:02Z;192.0.2.52;www.perplexity.ai;allowed'],
    host: 'www.perplexity.ai',
    client: '192.0.2.52',
  },
  {
    family: '',
    device: 'without headings',
    format: 'any-csv',
    lines: ['2026-11-20T08:15:02Z,192.0.2.52,api.groq.com'],
    host: 'api.groq.com',
    client: '192.0.2.52',
  },
]
