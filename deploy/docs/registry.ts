import type { Catalog } from '../../registry/catalog.ts'
import { catalogStats } from '../../registry/lookup.ts'
import type { Platform, PlatformDomain } from '../../registry/platform.ts'
import { PLATFORM_TYPES, type PlatformType } from '../../registry/platform-type.ts'
import { markdownTable } from './markdown.ts'

/** The text of docs/reference/registry.md, which is generated from the registry. */
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

const INTRODUCTION = `# The registry of AI platforms

Made by \`npm run docs\` from registry/platforms/*.yaml; a test fails where the two differ. How an operator adds, changes or
disables platforms stands in [registry-file.md](registry-file.md).
`

function overview(catalog: Catalog, types: readonly PlatformType[]): string {
  const { platforms, domains, vendors, byType, byMatch, byRole } = catalogStats(catalog)
  const rows = types.map((type) => {
    const { category, about } = PLATFORM_TYPES[type]
    return [`[\`${type}\`](#${type})`, category, byType[type].platforms, byType[type].domains, about]
  })
  const counts = (by: Readonly<Record<string, number>>) =>
    Object.entries(by)
      .map(([key, count]) => `${count} ${key}`)
      .join(', ')
  return `**${platforms} platforms** of ${vendors} vendors, **${domains} domains** (${counts(byMatch)}; ${counts(byRole)}), ${types.length} types.

${markdownTable(['platform_type', 'Category', 'Platforms', 'Domains', 'What it is'], rows)}
`
}

const NOTES = `## How to read an entry

- **match**: \`suffix\` is the name and everything below it; \`exact\` is that host only; in a \`pattern\`, \`*\` is one or more characters
  within one label. Where several rules fit a name, exact wins before pattern before the longest suffix; of two patterns the one with
  fewer labels that hold a \`*\`, then the one with more characters given. So a rule may stand below another platform's suffix:
  chat.openai.com is ChatGPT, everything else below openai.com is the OpenAI API.
- **role**: \`web\` a site or app, \`api\` what programs ask, \`cdn\` assets and downloads, \`auth\` sign-in, \`telemetry\`, \`docs\`.
- **specificity**: how surely a visit to the host is use of the platform. 1 the host serves nothing else; 0.9 to 0.95 the vendor's
  name for AI alone; 0.6 to 0.85 AI first, with other uses, or documentation; below 0.6 AI is one part of many, or the host shows what
  others published. From 0.6 a visit counts as AI use; below, as "AI-capable".
- **risk**: 0 to 100 with one line that says why. It is a class default (personal chat 50, provider under PRC law 75 to 85, API 35, ...)
  raised or lowered by a known fact about the platform. It was not checked against contracts or privacy policies: set your own where you have them.
- **source** and **evidence**: \`listed\` was read in a source of the entry; \`vendor\` was read in none, but the name carries the
  platform's or the vendor's own, or lies below a listed one.

## How it was curated

- Candidates were 828 platforms with 1,896 domains out of 40 public lists and sources. Facts were taken, no text and no code.
- Taken out: services that are closed; directories, prompt markets and labour markets, which are read and not used; names that browsers and
  phones ask in the background; hosts that everybody shares (registry/quality.ts lists them); entries that a list under a restrictive
  licence or with none alone names, where neither the vendor's nor the platform's name stands in the domain.
- What customers publish with a builder (\`*.lovable.app\`, \`*.replit.app\`, \`*.ai.studio\`) is a pattern of low specificity: who
  visits such a site does not use the builder.
- Names change hands and services close: a stale entry is as worth a report as a missing one.

## What a name cannot show

- Models inside a cloud: Claude or GPT behind AWS, Azure and Google are seen as the cloud's AI service, not as the model.
- AI inside general software (\`embedded_ai\`), in Office, in Snowflake, on api.cloudflare.com, or in GitHub's own API.
- Paths: Hugging Face Chat is huggingface.co/chat, Codex is part of chatgpt.com.
- Widgets: a customer-service bot on another firm's site asks its vendor's host, with nobody using AI knowingly.
- Libraries and CI fetch models from huggingface.co; an ollama.com query may be a look for updates.
- Encrypted ClientHello and DNS over HTTPS hide the name altogether; the collector counts how much that is.
`

function sources({ platforms }: Catalog): string {
  const counts = new Map<string, number>()
  for (const { source } of platforms) {
    const repositories = new Set(source.map((text) => text.split(':')[0] ?? text))
    for (const repository of repositories) counts.set(repository, (counts.get(repository) ?? 0) + 1)
  }
  const listed = platforms.flatMap(({ domains }) => domains).filter(({ evidence }) => evidence === 'listed').length
  const rows = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))

  return `## Sources

${listed} domains are listed by a source, the others carry the vendor's name.

${markdownTable(['Source', 'Platforms'], rows)}
`
}

function section({ platforms }: Catalog, type: PlatformType): string {
  const { category, about } = PLATFORM_TYPES[type]
  const lines = platforms.filter(({ platformType }) => platformType === type).map(line)
  return `## ${type}

${category}: ${about}. ${lines.length} platforms. \`=\` is that host only, \`*\` a pattern, every other name also stands for all below it.

${lines.join('\n')}
`
}

/** A list and no table: the cells of a table are padded to the longest, and one platform has 26 domains. */
function line({ id, name, vendor, url, risk, domains }: Platform): string {
  return `- [${name}](${url}) (\`${id}\`, ${vendor}, risk ${risk.score}): ${domains.map(shown).join(' ')}`
}

const shown = ({ domain, match }: PlatformDomain): string => `\`${match === 'exact' ? '=' : ''}${domain}\``
