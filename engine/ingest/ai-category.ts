/**
 * How devices say that a host is an AI service, in any language of their keys: the value of a
 * category, alone or in a list.
 *
 *   FortiGate             catdesc="Artificial Intelligence Technology", appcat="GenAI"
 *   PAN-OS                artificial-intelligence, ai-code-assistant and seven more (URL category list)
 *   Zscaler               AI and ML Applications, Generative AI and ML Applications, AI_ML_APPS
 *   Netskope, Umbrella, Sophos, Juniper, Cisco Talos    Generative AI
 *   Cloudflare Gateway    Artificial Intelligence
 */
const VALUES = [
  'artificial[ _-]intelligence(?:[ _-]technology)?',
  '(?:enhanced_)?gen(?:erative)?[ _-]?ai(?: (?:and|&) ml applications)?(?: - [a-z&,/ ]{1,40})?',
  'ai[ _](?:and|&)[ _]ml[ _]applications',
  'ai_ml_apps',
  'ai-(?:code-assistant|conversational-assistant|writing-assistant|media-service|data-and-workflow-optimizer|platform-service|meeting-assistant|website-generator)',
].join('|')
/** The value of a category, or one of its list. */
const AI = new RegExp(`^(?:${VALUES})$`, 'i')
/**
 * A field with a category: `catdesc="..."`, `"QueryCategoryNames":["..."]`, `urlcategory=... `. Not
 * in the query of a URL, where `?`, `&` or `/` is before the key.
 */
const FIELD =
  /(?<![\w?&/.%-])["']?(appcat|catdesc|urlcat|\w{0,20}categor(?:y|ies)(?:_?names?)?)["']?[=:] ?(?:"([^"]*)"|\[([^\]]*)\]|([^"\t,;|]*?)(?= \w+=|[\t,;|]|$))/gi
/** A column of a CSV line, or a member of a list in one. */
const COLUMN = new RegExp(`(?:^|[,;\\t|]) ?"?(?:[a-z /-]{1,40},){0,4}(?:${VALUES})(?=["',;|\\t]|$)`, 'im')
/** Formats whose lines may be columns without names. */
const COLUMN_FORMATS: ReadonlySet<string> = new Set(['any-csv', 'firewall-csv', 'netskope', 'umbrella', 'zscaler'])

/** A category is near the beginning; a longer message is one with a long URL. */
export const CATEGORY_CHARS_MAX = 4096

/**
 * Whether the device that wrote the message has the host in a category for AI services. All of its
 * categories must say so: a client can write one into a URL. The category of an application counts
 * only if there is no other. It is a signal of a candidate and nothing else.
 */
export function hasAiCategory(message: string, format: string): boolean {
  let isAi = false
  let isAiApp = false
  let hasField = false
  for (const [, key = '', quoted, list, plain = ''] of message.matchAll(FIELD)) {
    if (/super/i.test(key)) continue
    const values = (quoted ?? list ?? plain).split(/[,;|]/).map((value) => value.replace(/^[\s"']+|[\s"']+$/g, ''))
    const says = values.some((value) => AI.test(value))
    if (/^app/i.test(key)) isAiApp ||= says
    else if (hasField && says !== isAi) return false
    else isAi = says
    hasField ||= !/^app/i.test(key)
  }
  if (hasField) return isAi
  return isAiApp || (COLUMN_FORMATS.has(format) && COLUMN.test(message))
}
