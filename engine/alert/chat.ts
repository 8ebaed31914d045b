import { type AlertMessage, linesOfAlert } from './message.ts'

/** Alerts that a person reads in one message. */
const CHAT_ALERTS_MAX = 10

/**
 * The lines of a message for people: what is known about its only alert, or its alerts and how many
 * are not listed.
 */
function linesOf({ organization, severity, count, alerts, type }: AlertMessage): { about: string; list: string[] } {
  const [first] = alerts
  const shown = alerts.slice(0, CHAT_ALERTS_MAX).map(({ title }) => title)
  const others = count > shown.length ? [`and ${count - shown.length} more`] : []
  return {
    about: type === 'test' ? organization.name : `${organization.name}, severity ${severity}`,
    list: count === 1 && first ? linesOfAlert(first) : [...shown, ...others],
  }
}

/** The body for an incoming webhook of Slack; Mattermost and Rocket.Chat accept it, too. */
export function slackBody(message: AlertMessage): string {
  const { about, list } = linesOf(message)
  const lines = [`*${slackText(message.title)}*`, slackText(about), ...list.map((line) => `• ${slackText(line)}`)]
  if (message.url !== undefined) lines.push(`<${message.url}|Open in the console>`)
  return JSON.stringify({ text: lines.join('\n'), unfurl_links: false })
}

/**
 * Slack's control characters as entities. Names that others chose neither format nor mention nor
 * link: the zero-width space separates `*`, `_`, `~`, backquotes, and Mattermost's `@` and `](`.
 */
function slackText(text: string): string {
  const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }
  return text
    .replace(/[&<>]/g, (character) => entities[character] ?? '')
    .replace(/[*_~`]/g, '\u200b$&')
    .replace(/(?<![\w.])@|\](?=\()/g, '$&\u200b')
}

/** The body for a workflow of Microsoft Teams: an Adaptive Card. */
export function teamsBody(message: AlertMessage): string {
  const { about, list } = linesOf(message)
  const block = (text: string, more: Readonly<Record<string, unknown>> = {}) => {
    return { type: 'TextBlock', text: teamsText(text), wrap: true, ...more }
  }
  const body = [
    block(message.title, { weight: 'Bolder', size: 'Medium' }),
    block(about, { isSubtle: true, spacing: 'None' }),
    ...list.map((line) => block(line, { spacing: 'Small' })),
  ]
  const action = { type: 'Action.OpenUrl', title: 'Open in the console', url: message.url }
  const content = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.4',
    body,
    ...(message.url !== undefined && { actions: [action] }),
  }
  return JSON.stringify({
    type: 'message',
    attachments: [{ contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null, content }],
  })
}

/** Without the Markdown of text blocks: links, emphasis and lists. */
function teamsText(text: string): string {
  return text.replace(/[\\*_[\]()~`#]/g, '\\$&').replace(/^([-+]|\d+\.)/, '\\$1')
}
