import type { Rule } from './catalog.ts'
import { SHARED_HOSTS } from './quality.ts'

/**
 * Why a name that no platform has looks like an AI service. The first three are in the name, the
 * next two compare it with the registry, and the others come from its use.
 *
 *   ai_domain        its site is below .ai
 *   ai_word          "ai" is a word of its own: `acme-ai.com`, `ai.acme.com`
 *   ai_term          a term of AI products, or the name of a model: gpt, llm, copilot
 *   known_brand      a known AI platform has the same brand below another domain
 *   known_site       the registry has other hosts of the same site
 *   device_category  a firewall or proxy has the host in its category for AI
 *   with_ai          a client requested the name within minutes of an AI platform
 *   several_clients  at least three clients requested the name
 */
export type CandidateSignal =
  | 'ai_domain'
  | 'ai_word'
  | 'ai_term'
  | 'known_brand'
  | 'known_site'
  | 'device_category'
  | 'with_ai'
  | 'several_clients'

/**
 * Points of each signal, of 100. A name without a signal in itself is no candidate, unless a device
 * says so. docs/reference/visibility.md has the measured precision.
 */
const POINTS: Readonly<Record<CandidateSignal, number>> = {
  ai_domain: 50,
  ai_word: 50,
  ai_term: 60,
  known_brand: 20,
  known_site: 20,
  device_category: 60,
  with_ai: 10,
  several_clients: 15,
}
const SCORE_MAX = 100

/** A name, or the site of a name, that looks like an AI service. */
export interface CandidateName {
  /** The site (`acme.ai`) if the site itself looks like AI, otherwise the host. */
  readonly name: string
  readonly signals: readonly CandidateSignal[]
}

/**
 * Anywhere in a label, as in `claudecn` and `aicodingapi`. Each is rare in other words: of 120,000
 * popular names, `claude` is in 5 of no platform.
 */
const TERMS =
  /gpt|openai|genai|deepseek|midjourney|copilot|anthropic|huggingface|langchain|ollama|claude(?!tte)|qwen|perplexity|elevenlabs|openrouter|stablediffusion|chatbot|aichat|aicod/
/** Only as words of their own: they are also names of people and parts of other words. */
const TERM_WORDS: ReadonlySet<string> = new Set([
  ...['llm', 'llms', 'mcp', 'gemini', 'llama', 'mistral', 'grok', 'diffusion', 'inference'],
  ...['prompt', 'prompts', 'embedding', 'embeddings', 'neural', 'rag', 'agentic'],
])
/**
 * Labels of advertising and of measurement, much of which is below .ai. Pages load these hosts, so
 * a request is no use. `downloads` and `threads` are other words.
 */
const ADVERTISING =
  /^ad[bcdfghjklmnqrstvwxyz]|^ads?$|^(?:u?sync|pixel|tag|tags|track)$|[^eo]ads?$|bid|dsp|rtb|ssp|programmat|track(?:er|ing)|analytics/
/** Labels of registries directly below a country: `co.uk`. */
const SECOND_LEVELS: ReadonlySet<string> = new Set([
  ...['ac', 'co', 'com', 'edu', 'go', 'gob', 'gov', 'mil', 'ne', 'net', 'nom', 'or', 'org'],
])
/** Shorter brands are also other words. */
const BRAND_CHARS_MIN = 5
const BRAND_SPECIFICITY_MIN = 0.95

/**
 * The candidate of a canonical name, with the signals in the name itself; undefined if it has none
 * and no device says that it is one. For names that no platform has.
 */
export function candidateOf(name: string, isByDevice = false): CandidateName | undefined {
  const { site, brand, below } = siteOf(name)
  if (ADVERTISING.test(brand) || below.some((label) => ADVERTISING.test(label))) return undefined
  const signals: CandidateSignal[] = []
  if (!SHARED_HOSTS.has(site)) {
    if (site.endsWith('.ai')) signals.push('ai_domain')
    const words = brand.split('-')
    if (words.length > 1 && words.includes('ai')) signals.push('ai_word')
    if (hasTerm(brand, words)) signals.push('ai_term')
    if (signals.length > 0) return { name: site, signals }
    if (below.includes('ai')) signals.push('ai_word')
  }
  if (below.some((label) => hasTerm(label, label.split('-')))) signals.push('ai_term')
  if (signals.length > 0) return { name, signals }
  return isByDevice ? { name: SHARED_HOSTS.has(site) ? name : site, signals } : undefined
}

/** 0 to 100: how strongly the signals suggest an AI service. */
export function scoreOf(signals: readonly CandidateSignal[]): number {
  return Math.min(
    signals.reduce((score, signal) => score + POINTS[signal], 0),
    SCORE_MAX,
  )
}

/** The brands and sites of a registry. */
export class KnownSites {
  readonly #brands = new Set<string>()
  readonly #sites = new Set<string>()

  constructor(rules: readonly Rule[]) {
    for (const { domain, match, purpose, specificity } of rules) {
      if (purpose !== 'use' || match === 'pattern' || specificity < BRAND_SPECIFICITY_MIN) continue
      const { site, brand } = siteOf(domain)
      if (SHARED_HOSTS.has(site)) continue
      this.#sites.add(site)
      if (domain === site && brand.length >= BRAND_CHARS_MIN) this.#brands.add(brand)
    }
  }

  /** The signals of a candidate that compare its name with the registry. */
  signalsOf(name: string): CandidateSignal[] {
    const { site, brand } = siteOf(name)
    if (SHARED_HOSTS.has(site)) return []
    if (this.#sites.has(site)) return ['known_site']
    return this.#brands.has(brand) ? ['known_brand'] : []
  }
}

function hasTerm(label: string, words: readonly string[]): boolean {
  return TERMS.test(label) || words.some((word) => TERM_WORDS.has(word))
}

interface Site {
  /** The registered domain, as far as its form shows. */
  readonly site: string
  /** The first label of the site. */
  readonly brand: string
  /** The labels left of the site. */
  readonly below: readonly string[]
}

/**
 * Without the Public Suffix List, which programs would have to update: a country's domain may have
 * one of a few labels below it, as `co.uk` has.
 */
function siteOf(name: string): Site {
  const labels = name.split('.')
  const isSecondLevel = labels.at(-1)?.length === 2 && SECOND_LEVELS.has(labels.at(-2) ?? '')
  const first = Math.max(0, labels.length - (isSecondLevel ? 3 : 2))
  return { site: labels.slice(first).join('.'), brand: labels[first] ?? '', below: labels.slice(0, first) }
}
