import type { Catalog } from '../../registry/catalog.ts'
import { catalogStats } from '../../registry/lookup.ts'
import type { Platform, PlatformDomain } from '../../registry/platform.ts'
import { PLATFORM_TYPES, type PlatformType } from '../../registry/platform-type.ts'
import { markdownTable } from './markdown.ts'

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

const INTRODUCTION = `# Registry of AI platforms

\`npm run docs\` generates this page from registry/platforms/*.yaml. A test fails when the two differ.
[registry-file.md](registry-file.md) explains how to add, change or disable platforms.
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

${markdownTable(['platform_type', 'Category', 'Platforms', 'Domains', 'Description'], rows)}
`
}

const NOTES = `## How to read an entry

- **match**: \`suffix\` is the name and everything below it. \`exact\` is that host only. In a \`pattern\`, \`*\` is one or more characters
  within one label. If several rules match a name, exact takes precedence over pattern, and pattern over the longest suffix. Of two
  patterns, the one with fewer labels that contain a \`*\` wins, then the one with more fixed characters. So a rule may be below another
  platform's suffix: chat.openai.com is ChatGPT, everything else below openai.com is the OpenAI API.
- **role**: \`web\` a site or app, \`api\` requests of programs, \`cdn\` assets and downloads, \`auth\` sign-in, \`telemetry\`, \`docs\`.
- **specificity**: how certainly a visit to the host is use of the platform. 1: the host serves nothing else. 0.9 to 0.95: the vendor's
  name for AI alone. 0.6 to 0.85: AI first, with other uses, or documentation. Below 0.6: AI is one part of many, or the host shows
  content that others published. From 0.6, a visit counts as AI use; below, as "AI-capable".
- **risk**: 0 to 100, with the reason in one line. It is a class default (personal chat 50, provider under PRC law 75 to 85, API 35, ...)
  raised or lowered by a known fact about the platform. It was not checked against contracts or privacy policies. Set your own where you
  have them.
- **source** and **evidence**: \`listed\` domains were found in a source of the entry. \`vendor\` domains were found in none, but contain
  the platform's or the vendor's name, or are below a listed domain.

## How it was curated

- The candidates were 828 platforms with 1,896 domains from 40 public lists and sources. Facts were taken, but no text and no code.
- Removed: closed services; directories, prompt markets and labor markets, which people read rather than use; names that browsers and
  phones request in the background; hosts that everyone shares (registry/quality.ts lists them); entries found only in a list with a
  restrictive license or without a license, unless the domain contains the vendor's or the platform's name.
- Sites that customers publish with a builder (\`*.lovable.app\`, \`*.replit.app\`, \`*.ai.studio\`) are patterns of low specificity,
  because visitors of such a site do not use the builder.
- Domains change owners and services close. Please report outdated entries as well as missing ones.

## What a name cannot show

- Models inside a cloud: Claude or GPT on AWS, Azure and Google appears as the cloud's AI service, not as the model.
- AI inside general software (\`embedded_ai\`), in Office, in Snowflake, on api.cloudflare.com, or in GitHub's own API.
- Paths: Hugging Face Chat is huggingface.co/chat, Codex is part of chatgpt.com.
- Widgets: a customer-service bot on another company's site contacts its vendor's host, although nobody knowingly uses AI.
- Automation: libraries and CI fetch models from huggingface.co, and an ollama.com query may be an update check.
- Encrypted ClientHello and DNS over HTTPS hide the name completely. The collector counts how often.
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

${listed} domains are listed by a source. The others contain the vendor's name.

${markdownTable(['Source', 'Platforms'], rows)}
`
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
