import type { Catalog } from '../../registry/catalog.ts'
import { LABELS_OF_ROLE } from '../../registry/infer-role.ts'
import { catalogStats } from '../../registry/lookup.ts'
import type { Platform, PlatformDomain } from '../../registry/platform.ts'
import { PLATFORM_TYPES, type PlatformType } from '../../registry/platform-type.ts'
import { code, markdownTable } from './markdown.ts'

/** Generates docs/reference/registry.md from the registry. */
export function registryPage(catalog: Catalog): string {
  const types = Object.keys(PLATFORM_TYPES) as PlatformType[]
  return [
    INTRODUCTION,
    overview(catalog, types),
    NOTES,
    sources(catalog),
    ...types.map((type) => section(catalog, type)),
  ].join('\n')
}

/** The labels that show the role of a name below a suffix rule. */
export function labelRoles(): string {
  const rows = Object.entries(LABELS_OF_ROLE).map(([role, labels]) => [code(role), labels.map(code).join(', ')])
  return markdownTable(['Role', 'Labels'], rows)
}

const INTRODUCTION = `# Registry of AI platforms

\`npm run docs\` generates this page from registry/platforms/*.yaml and registry/facts/*.yaml. A test fails when the two differ.
[registry-file.md](registry-file.md) explains how to add, change or disable platforms.
`

function overview(catalog: Catalog, types: readonly PlatformType[]): string {
  const { platforms, domains, vendors, byType, byMatch, byRole, byPurpose } = catalogStats(catalog)
  const rows = types.map((type) => {
    const { category, about } = PLATFORM_TYPES[type]
    return [`[\`${type}\`](#${type})`, category, byType[type].platforms, byType[type].domains, about]
  })
  const counts = (by: Readonly<Record<string, number>>) =>
    Object.entries(by)
      .map(([key, count]) => `${count} ${key}`)
      .join(', ')
  return `**${platforms} platforms** of ${vendors} vendors, **${domains} domains** (${counts(byMatch)}; ${counts(byRole)}; ${counts(byPurpose)}), ${types.length} types.

${markdownTable(['platform_type', 'Category', 'Platforms', 'Domains', 'Description'], rows)}
`
}

const NOTES = `## How to read an entry

- **match**: \`suffix\` is the name and everything below it. \`exact\` is that host only. In a \`pattern\`, \`*\` is one or more characters
  within one label. If several rules match a name, exact takes precedence over pattern, and pattern over the longest suffix. Of two
  patterns, the one with fewer labels that contain a \`*\` wins, then the one with more fixed characters. So a rule may be below another
  platform's suffix: chat.openai.com is ChatGPT, everything else below openai.com is the OpenAI API.
- **role**: \`web\` a site, \`app\` a desktop or mobile app, \`api\` requests of programs, \`cdn\` assets and downloads, \`auth\` sign-in,
  \`telemetry\`, \`docs\`. Below a suffix, labels such as \`otel\` and \`cdn\` show the role of a name
  ([registry-file.md](registry-file.md#roles-of-names-below-a-suffix)).
- **purpose**: \`use\`, or why else clients request the host: \`widget\`, \`pixel\`, \`background\`, \`published\`
  ([registry-file.md](registry-file.md#purposes)). Only \`use\` is evidence that a platform is in use.
- **specificity**: how certainly a visit to the host is use of the platform. 1: the host serves nothing else. 0.9 to 0.95: the vendor's
  name for AI alone. 0.6 to 0.85: AI first, with other uses, or documentation. Below 0.6: AI is one part of many, or the host shows
  content that others published. From 0.6, a visit counts as AI use; below, as "AI-capable".
- **risk**: 0 to 100, a [sum](#risk-as-a-sum) of the points of the platform's class and of known facts. Set your own where you have a
  contract ([registry-file.md](registry-file.md)).
- **source** and **evidence**: each \`listed\` domain has the public page that names it and the day of the version that was read. A
  \`curator\` domain has none that may be cited, and says why it is here.
- **status**: \`active\`, \`renamed\` or \`ended\`. Devices still ask for the names of closed services, so these entries stay.
- **checked**: the day on which the entry was compared with its sources.
- **country** and **vendor_url**: the legal entity's country, only where a page states it, and the vendor's site.

## Risk as a sum

The score is the points of the class plus the points of each known fact, between 5 and 100. The class says what services of the kind
receive, and under which law: personal assistants 50, APIs 35, meeting recorders 60, services under PRC law 70 to 85, and so on. Facts are
from the vendor's terms and trust pages, with page and date:

| Fact | Points |
| --- | --- |
| \`trains_on_content\`: content of users trains models | \`no\` -8, \`opt_in\` -4, \`opt_out\` +6, \`yes\` +10 |
| \`retention_days\` | 0: -5; to 30: -3; to 180: 0; longer: +3 |
| \`hosting_country\` | EEA, or data protection that the EU recognizes: -2; CN, RU: +5; others: 0 |
| \`soc2\`, \`iso27001\`, \`iso42001\`, \`fedramp\` | -3, -2, -2, -4 |
| \`dpa\`, \`enterprise_tier\`, \`sso\` | -2 each |
| \`tenant_restriction\`: a header with which a proxy allows only accounts of the organization | -4 |
| \`minimum_age\` | 0: shown, not rated |

- If plans differ, the fact with the most points counts, because a host name does not reveal the plan.
- An unknown fact has 0 points. Good facts lower the score, so an unknown fact is never rated as a good one.
- A platform without facts has the points of its class.
- Most certifications were read in a dated record of the vendor's page, which \`via\` in registry/facts names. No audit report was read.
- \`posture-admin registry show ID --risk\` shows the sum. \`metadata.risk.terms\` of the API has it too.
- An organization replaces the risk of a platform with its own score and reason: [registry-file.md](registry-file.md).

## How it was curated

- The candidates were 828 platforms with 1,896 domains from 40 public lists and sources. Facts were taken, but no text and no code.
- Removed: closed services; directories, prompt markets and labor markets, which people read rather than use; names that browsers and
  phones request in the background; hosts that everyone shares (registry/quality.ts lists them); entries found only in a list with a
  restrictive license, unless the domain contains the vendor's or the platform's name.
- A repository without a license is cited as the place where a name was seen. Nothing of it was copied.
- Sites that customers publish with a builder (\`*.lovable.app\`, \`*.replit.app\`, \`*.ai.studio\`) are patterns of low specificity,
  because visitors of such a site do not use the builder.
- Domains change owners and services close. Please report outdated entries as well as missing ones.

## What a name cannot show

- Models inside a cloud: Claude or GPT on AWS, Azure and Google appears as the cloud's AI service, not as the model.
- AI inside general software (\`embedded_ai\`), in Office, in Snowflake, on api.cloudflare.com, or in GitHub's own API.
- Paths: Hugging Face Chat is huggingface.co/chat, Codex is part of chatgpt.com.
- Widgets: a customer-service bot on another company's site contacts its vendor's host, although nobody knowingly uses AI. Known
  hosts of widgets have the purpose \`widget\`.
- Automation: libraries and CI fetch models from huggingface.co, and an ollama.com query may be an update check.
- Encrypted ClientHello and DNS over HTTPS hide the name completely. The collector counts how often.
`

function sources({ platforms }: Catalog): string {
  const counts = new Map<string, number>()
  for (const { source } of platforms) {
    const repositories = new Set(source.map(sourceName))
    for (const repository of repositories) counts.set(repository, (counts.get(repository) ?? 0) + 1)
  }
  const domains = platforms.flatMap((platform) => platform.domains)
  const listed = domains.filter(({ evidence }) => evidence === 'listed').length
  const rows = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))

  return `## Sources

${listed} domains have a public source. The other ${domains.length - listed} have a sentence of the curator. \`posture-admin registry show ID\`
shows the page of each domain. ${platforms.filter(({ facts }) => facts !== undefined).length} platforms have facts, and ${platforms.filter(({ provenance }) => provenance?.country !== undefined).length} a country.

${markdownTable(['Source', 'Platforms'], rows)}
`
}

/** The repository, or the host of a page. Repositories of one owner with one each are one row. */
function sourceName(text: string): string {
  const name = text.startsWith('https://') ? new URL(text.split(' ')[0] ?? text).hostname : (text.split(':')[0] ?? text)
  return name.startsWith('api-evangelist/') ? 'api-evangelist' : name
}

function section({ platforms }: Catalog, type: PlatformType): string {
  const { category, about } = PLATFORM_TYPES[type]
  const lines = platforms.filter(({ platformType }) => platformType === type).map(line)
  return `## ${type}

${category}: ${about}. ${lines.length} platforms. \`=\` is that host only, \`*\` a pattern. Every other name includes all names below it.

${lines.join('\n')}
`
}

/**
 * A list item, not a table row: table cells are padded to the longest, and one platform has 26
 * domains.
 */
function line({ id, name, vendor, url, risk, domains }: Platform): string {
  return `- [${name}](${url}) (\`${id}\`, ${vendor}, risk ${risk.score}): ${domains.map(shown).join(' ')}`
}

const shown = ({ domain, match }: PlatformDomain): string => `\`${match === 'exact' ? '=' : ''}${domain}\``
