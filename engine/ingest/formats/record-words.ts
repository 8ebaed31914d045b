import { isLetter, isUpper, textAtIgnoreCase } from './bytes.ts'

/*
 * Words of records that are no client's request: sign-ins, mail, audits, leases, processes,
 * messages about a device. A match begins at the start of a word or at a capital: `SigninLogs`,
 * `UserLoggedIn` and `AUDIT_SUCCESS` match, `release` does not.
 */
const WORDS = [
  'auth logon login logoff logout logged signin sign-in sign_in signon sso mfa saml radius kerberos ldap password credential account',
  'vpn ssh sshd sudo su session-open rdp tunnel_up tunnel-up',
  'mail email e-mail smtp imap pop3 pop3s imaps lmtp postfix sendmail dovecot exchange spam phish recipient',
  'audit admin configuration config exchangeadmin directory iam identity user_management',
  'dhcp lease snmp trap arp wlan roam',
  'process exec malware virus antivirus endpoint edr quarantine infect incident gravityzone vulnerability scan',
  'cron kernel systemd startup shutdown reboot heartbeat license keepalive backup',
  'waf asm appfw incapsula imperva netscaler fortiweb big-ip f5 cloudfront modsecurity loadbalancer elasticloadbalancing access_log access-log nginx apache httpd iis w3svc haproxy envoy traefik caddy',
]
  .join(' ')
  .split(' ')

/**
 * For the first two bytes of a word: its index in BUCKETS, or 0. Most words of a text have no
 * bucket.
 */
const BUCKET_OF = new Uint8Array(1 << 10)
const BUCKETS: string[][] = [[]]
for (const word of WORDS) {
  const start = startOf(word.charCodeAt(0), word.charCodeAt(1))
  if (BUCKET_OF[start] === 0) BUCKET_OF[start] = BUCKETS.push([]) - 1
  BUCKETS[BUCKET_OF[start] ?? 0]?.push(word)
}

/** Five bits of each byte, which ignore the case of a letter. */
function startOf(first: number, second: number): number {
  return ((first & 31) << 5) | (second & 31)
}

/** A longer text is searched up to this length, because names of kinds are near the beginning. */
const TEXT_BYTES_MAX = 128
/** A shorter word must be a whole word: `su` and `edr` match, `support` does not. */
const STEM_BYTES_MIN = 4

/** Whether the text in [start, end) has one of the words. */
export function hasRecordWord(view: DataView, start: number, end: number): boolean {
  // No word begins at the last byte: the shortest has two bytes.
  const limit = Math.min(end, start + TEXT_BYTES_MAX) - 1
  let isWordStart = true
  let wasUpper = false
  for (let at = start; at < limit; at++) {
    const byte = view.getUint8(at)
    const upper = isUpper(byte)
    const bucket = isWordStart || (upper && !wasUpper) ? (BUCKET_OF[startOf(byte, view.getUint8(at + 1))] ?? 0) : 0
    if (bucket !== 0 && isInBucket(view, at, end, BUCKETS[bucket] ?? [])) return true
    isWordStart = !isLetter(byte)
    wasUpper = upper
  }
  return false
}

function isInBucket(view: DataView, at: number, end: number, words: readonly string[]): boolean {
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? ''
    if (!textAtIgnoreCase(view, at, end, word)) continue
    const next = at + word.length
    if (word.length >= STEM_BYTES_MIN || next === end || !isLetter(view.getUint8(next))) return true
  }
  return false
}
