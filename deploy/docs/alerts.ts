import { messageOf } from '../../engine/alert/message.ts'
import { payloadFields } from '../../engine/alert/payload.ts'
import { RULES } from '../../engine/alert/rules.ts'
import { ALERT_RULES } from '../../engine/store/alerts.ts'
import { code, codeBlock, markdownTable } from './markdown.ts'

/** The tables and examples of docs/reference/alerts.md. */
export const ALERT_TABLES: Readonly<Record<string, () => string>> = {
  'alert rules': rulesTable,
  'alert message': () => codeBlock('json', JSON.stringify(EXAMPLE, null, 2)),
  'alert message fields': () =>
    markdownTable(
      ['Field', 'Meaning'],
      payloadFields().map(([name, about]) => [code(name), about]),
    ),
}

function rulesTable(): string {
  const rows = ALERT_RULES.map((rule) => {
    const { about, severity, threshold } = RULES[rule]
    const byDefault = threshold === undefined ? '' : `${threshold.byDefault} ${threshold.unit}`.trim()
    const range = threshold === undefined ? '' : `${threshold.min} to ${threshold.max}`
    return [code(rule), about, severity, byDefault, range]
  })
  return markdownTable(['Rule', 'Raises an alert if', 'Severity', 'Default threshold', 'Range'], rows)
}

/** A message as the service writes it. */
export const EXAMPLE = messageOf(
  {
    id: '2f1c7a52-6f0e-4f43-9d55-6a1f4b0b8a11',
    name: 'Acme',
    domain: 'acme.example',
    plan: 'enterprise',
    createdAtMs: 0,
    scanFrequency: 'daily',
    evidenceWindowDays: 30,
  },
  'unapproved-platform',
  [
    {
      id: '9b1fd2f59bb94d1cb7a2c0f14f1e3d07',
      organizationId: '2f1c7a52-6f0e-4f43-9d55-6a1f4b0b8a11',
      sequence: 1,
      rule: 'unapproved-platform',
      severity: 'high',
      createdAtMs: Date.parse('2026-11-20T09:15:02Z'),
      title: 'DeepSeek is used without approval (risk 88)',
      subject: { kind: 'platform', id: 'c3a2a6de-7c53-4a5e-8f6a-0a55a1c2b7d4', name: 'DeepSeek' },
      details: {
        platform_type: 'llm_chat',
        category: 'LLM Chat Assistant',
        vendor: 'DeepSeek',
        risk: 88,
        risk_reason: 'Stores data in mainland China; Trains on your content unless you opt out',
        decision: 'waiting',
        matches: 212,
        blocked_matches: 0,
        clients: 9,
        first_seen: '2026-11-20T08:58:41Z',
        last_seen: '2026-11-20T09:14:33Z',
      },
      messages: [],
    },
  ],
  { count: 1, isFirstScan: false, part: 1, parts: 1 },
)
