/**
 * A proxy's access log as RFC 5424 messages of 300 bytes with a token. Every tenth is a request to
 * an AI platform.
 */
export const MESSAGE_BYTES = 300
export const MATCH_EVERY = 10

const PLATFORM_HOSTS = [
  'api.openai.com',
  'chatgpt.com',
  'claude.ai',
  'api.anthropic.com',
  'gemini.google.com',
  'api.mistral.ai',
  'www.perplexity.ai',
  'api.deepseek.com',
  'huggingface.co',
  'api.groq.com',
  'copilot.microsoft.com',
  'api.githubcopilot.com',
]
const SITES = ['news', 'shop', 'mail', 'cdn', 'video', 'update', 'login', 'static', 'img', 'ads', 'docs', 'forum']
const DOMAINS = ['example.com', 'example.net', 'example.org', 'corp.example', 'service.example', 'cloud.example']
const CLIENTS = 500

/**
 * `count` messages in sequence, each preceded by its length (RFC 6587 §3.4.1). Of these, count / 10
 * name a platform.
 */
export function countedMessages(count: number, token: string): Buffer {
  const nowMs = Date.now()
  return Buffer.from(
    Array.from({ length: count }, (_, index) => `${MESSAGE_BYTES} ${message(index, token, nowMs)}`).join(''),
  )
}

function message(index: number, token: string, nowMs: number): string {
  const timeMs = nowMs + (index % 1000)
  const client = (index * 7919) % CLIENTS
  const host =
    index % MATCH_EVERY === 0
      ? PLATFORM_HOSTS[(index * 31) % PLATFORM_HOSTS.length]
      : `${SITES[(index * 13) % SITES.length]}${index % 50}.${DOMAINS[(index * 7) % DOMAINS.length]}`
  const head = `<134>1 ${new Date(timeMs).toISOString()} proxy-1 squid 7711 - [svc@00000 key="${token}"] `
  const line = `${(timeMs / 1000).toFixed(3)} ${String(100 + (index % 900)).padStart(6)} 10.20.${client >> 8}.${client & 255} TCP_TUNNEL/200 ${4000 + (index % 5000)} CONNECT ${host}:443 - HIER_DIRECT/198.51.100.${index % 250} -`
  // The rest represents the other fields that sites log.
  return `${head}${line} ${'"-" "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36"'.repeat(2)}`.slice(
    0,
    MESSAGE_BYTES,
  )
}
