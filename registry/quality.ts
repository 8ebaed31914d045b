import { hostNameFault, patternFault } from './domain-name.ts'
import type { Platform } from './platform.ts'
import { USE_SPECIFICITY_MIN } from './platform-type.ts'

/** A defect of the data: platform, domain and description. */
export interface QualityFinding {
  readonly platform: string
  readonly domain: string
  readonly finding: string
}

/**
 * Names below which anyone may have hosts, or which most pages load: a suffix rule for such a name
 * causes false alarms. Single hosts and names below them may be rules. Lists for proxy routing
 * contain such names, which is how they get into registries.
 */
export const SHARED_HOSTS: ReadonlySet<string> = new Set([
  ...[
    'googleapis.com',
    'google.com',
    'gstatic.com',
    'googleusercontent.com',
    'bing.com',
    'microsoft.com',
    'live.com',
    'office.com',
  ],
  ...[
    'office.net',
    'windows.net',
    'core.windows.net',
    'blob.core.windows.net',
    'azure.com',
    'azureedge.net',
    'azurefd.net',
  ],
  ...[
    'azurewebsites.net',
    'trafficmanager.net',
    'amazonaws.com',
    's3.amazonaws.com',
    'cloudfront.net',
    'on.aws',
    'api.aws',
  ],
  ...[
    'akamaized.net',
    'akamaihd.net',
    'edgekey.net',
    'fastly.net',
    'cloudflare.com',
    'cloudflare.net',
    'cdn.cloudflare.net',
  ],
  ...[
    'workers.dev',
    'pages.dev',
    'vercel.app',
    'netlify.app',
    'github.com',
    'github.io',
    'githubusercontent.com',
    'gitlab.com',
  ],
  ...[
    'gitlab.net',
    'sentry.io',
    'statsig.com',
    'statsigapi.net',
    'auth0.com',
    'okta.com',
    'intercom.io',
    'intercom.com',
  ],
  ...[
    'intercomcdn.com',
    'livekit.cloud',
    'stripe.com',
    'segment.io',
    'arkoselabs.com',
    'imgix.net',
    'cloudinary.com',
    'b-cdn.net',
  ],
  ...[
    'facebook.com',
    'meta.com',
    'apple.com',
    'amazon.com',
    'adobe.com',
    'oracle.com',
    'ibm.com',
    'sap.com',
    'x.com',
    'twitter.com',
  ],
  ...[
    'aliyun.com',
    'aliyuncs.com',
    'baidu.com',
    'qq.com',
    'tencent.com',
    'volces.com',
    '360.cn',
    '360.com',
    'yandex.ru',
    'yandex.net',
  ],
  ...[
    'brave.com',
    'jetbrains.com',
    'atlassian.com',
    'atlassian.net',
    'herokuapp.com',
    'digitalocean.com',
    'ovh.net',
    'naver.com',
  ],
])

/** Hosts that browsers and phones query in the background, while nobody uses AI. */
export const BACKGROUND_HOSTS: ReadonlySet<string> = new Set([
  'geller-pa.googleapis.com',
  'proactivebackend-pa.googleapis.com',
  'substrate.office.com',
  'api.github.com',
  'api.cloudflare.com',
])

/**
 * Public suffixes that belong to one platform, which separates its customers' files by them.
 * Everything below is this platform.
 */
const OWN_SUFFIXES: ReadonlySet<string> = new Set([
  'oaiusercontent.com',
  'files.oaiusercontent.com',
  'claudeusercontent.com',
  'metaaiusercontent.com',
])

/**
 * Names below which the customers of app builders publish sites for everyone. A visitor of such a
 * site does not use the builder.
 */
const PUBLISHED_PARENTS: ReadonlySet<string> = new Set([
  ...['coze.site', 'manus.space', 'base44.app', 'lovable.app', 'repl.co', 'replit.app'],
  ...['windsurf.build', 'ai.studio', 'chatgpt.site', 'modal.host', 'modal.run', 'bolt.host'],
])

/**
 * The name does not reveal embedded AI, so such an entry must not count as AI use: see
 * docs/reference/registry.md.
 */
const EMBEDDED_SPECIFICITY_MAX = 0.5
const AI_ONLY_NAMES: ReadonlySet<string> = new Set(['notion.ai'])

/**
 * Returns the defects of the data. The caller passes `isPublicSuffix`, so that the list of public
 * suffixes, which only tests need, is not shipped.
 */
export function qualityReport(
  platforms: readonly Platform[],
  isPublicSuffix: (domain: string) => boolean,
): QualityFinding[] {
  const findings: QualityFinding[] = []
  const ids = new Set<string>()
  const names = new Map<string, string>()
  const domains = new Map<string, string>()
  for (const platform of platforms) {
    const report = (domain: string, finding: string) => findings.push({ platform: platform.id, domain, finding })
    if (ids.has(platform.id)) report('', 'the ID is used twice')
    ids.add(platform.id)
    const name = platform.name.toLowerCase()
    const namesake = names.get(name)
    if (namesake !== undefined) report('', `the name is already used by ${namesake}`)
    names.set(name, platform.id)
    if (platform.source.some((source) => source.trim() === '')) report('', 'no source')
    reportProvenance(platform, report)
    if (platform.domains.length === 0) report('', 'no domain')
    for (const { domain, match, specificity, purpose } of platform.domains) {
      const owner = domains.get(domain)
      if (owner !== undefined) report(domain, `is already listed under ${owner}`)
      domains.set(domain, platform.id)
      const fault = match === 'pattern' ? patternFault(domain) : hostNameFault(domain)
      if (fault !== undefined) report(domain, fault)
      const shared = match === 'suffix' && !OWN_SUFFIXES.has(domain)
      if (shared && isPublicSuffix(domain)) report(domain, 'is a public suffix: names below it belong to others')
      if (match === 'suffix' && SHARED_HOSTS.has(domain)) report(domain, 'a suffix rule for a shared host')
      if (match === 'pattern' && isTooBroad(domain))
        report(domain, 'the pattern matches a whole top-level domain or shared host')
      if (BACKGROUND_HOSTS.has(domain) && purpose !== 'background')
        report(domain, 'requested by browsers in the background')
      if (purpose !== 'use' && specificity >= USE_SPECIFICITY_MIN)
        report(domain, `specificity from ${USE_SPECIFICITY_MIN} on for the purpose ${purpose}`)
      if (purpose === 'use' && match === 'pattern' && PUBLISHED_PARENTS.has(domain.slice(2)))
        report(domain, 'the purpose of what customers published is published')
      const embedded = platform.platformType === 'embedded_ai' && !AI_ONLY_NAMES.has(domain)
      if (embedded && specificity > EMBEDDED_SPECIFICITY_MAX)
        report(domain, `specificity above ${EMBEDDED_SPECIFICITY_MAX}`)
    }
  }
  return findings
}

/** Every domain has a source or a curator's sentence. A platform that is not active has a note. */
function reportProvenance(
  { source, domains, provenance }: Platform,
  report: (domain: string, finding: string) => void,
): void {
  for (const { domain, evidence, source: index = 0, why } of domains) {
    if (evidence === 'listed' && source[index] === undefined) report(domain, 'no source')
    if (evidence === 'curator' && why === undefined) report(domain, 'no sentence by the curator')
    if (evidence === 'listed' && why !== undefined) report(domain, 'a sentence by the curator, but a source')
  }
  if (provenance !== undefined && provenance.status !== 'active' && provenance.note === undefined)
    report('', `is ${provenance.status} without a note`)
}

/**
 * Whether a pattern like `*.com` or `*.amazonaws.com` has only stars above a name that identifies
 * no platform.
 */
function isTooBroad(pattern: string): boolean {
  const literals = pattern.split('.').filter((label) => !/^\*+$/.test(label))
  return literals.length < 2 || (literals.length < pattern.split('.').length && SHARED_HOSTS.has(literals.join('.')))
}
