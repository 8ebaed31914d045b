import type { AlertMessage } from './message.ts'

/** Alerts that a person reads in one message. */
const CHAT_ALERTS_MAX = 10

/** The lines of a message for people: its title, its alerts, and how many are not listed. */
function linesOf({ organization, severity, count, alerts, type }: AlertMessage): { about: string; list: string[] } {
  const shown = count === 1 ? [] : alerts.slice(0, CHAT_ALERTS_MAX).map(({ title }) => title)
  const others = count === 1 ? 0 : count - shown.length
  return {
    about: type === 'test' ? organization.name : `${organization.name}, severity ${severity}`,
    list: others > 0 ? [...shown, `and ${others} more`] : shown,
  }
}

/** The body for an incoming webhook of Slack; Mattermost and Rocket.Chat accept it, too. */
export function slackBody(message: AlertMessage): string {
  const { about, list } = linesOf(message)
  const lines = [`*${slackText(message.title)}*`, slackText(about), ...list.map((line) => `• ${slackText(line)}`)]
  return JSON.stringify({ text: lines.join('\n'), unfurl_links: false })
}

/**
 * Slack's control characters as entities. The zero-width space keeps `*`, `_`, `~` and backquotes
 * from formatting names that others chose.
 */
function slackText(text: string): string {
  const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }
  return text.replace(/[&<>]/g, (character) => entities[character] ?? '').replace(/[*_~`]/g, '\u200b$&')
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
  const content = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.4',
    body,
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
