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
/** `category="..."`, `"urlCategory":"..."`, `catdesc=`: the key says what the value is. */
const KEYED = `(?:cat|catdesc|appcat|hostcat|urlcat|url_?super_?category|\\w{0,20}categor(?:y|ies)(?:_?names?)?)["']?[=:] ?["'[]*`
/** A column of a CSV line, or a member of a list in one. */
const COLUMN = `(?:^|[,;\\t|]) ?"?(?:[a-z -]{1,40},){0,4}`
const CATEGORY = new RegExp(`(?:\\b${KEYED}|${COLUMN})(?:${VALUES})(?=["',;|\\t\\]]|$| \\w+=)`, 'im')

/** A category is near the beginning; a longer message is one with a long URL. */
export const CATEGORY_CHARS_MAX = 4096

/**
 * Whether the device that wrote the message has the host in a category for AI services. It is a
 * signal of a candidate and nothing else: a client can write such a text into a URL.
 */
export function hasAiCategory(message: string): boolean {
  return CATEGORY.test(message)
}
