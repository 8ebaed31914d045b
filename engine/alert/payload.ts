import { z } from 'zod'
import { ALERT_RULES, ALERT_SEVERITIES } from '../store/alerts.ts'

/*
 * The schema of the message that a webhook receives. The service does not load it: it is for the
 * documentation and tests, which compare it with messages.
 */

const id = z.string().regex(/^[0-9a-f]{32}$/)
const time = z.iso.datetime()
const url = z.url().optional()
const severity = z.enum(ALERT_SEVERITIES)

const alertSchema = z.strictObject({
  id: id.describe('Id of the alert; an alert that is sent again has the same'),
  number: z.number().int().min(1).describe('Number of the alert in the organization'),
  title: z.string().min(1).describe('The alert in one line'),
  severity: severity.describe('Severity of the alert'),
  created_at: time.describe('When the alert was raised'),
  subject: z
    .strictObject({ kind: z.string().min(1), id: z.string().min(1), name: z.string() })
    .describe('What the alert is about: its kind, such as `platform` or `api-key`, its id and its name'),
  details: z
    .record(z.string().regex(/^[a-z][a-z_]*$/), z.union([z.string(), z.number(), z.boolean()]))
    .describe('Values that depend on the rule'),
  groups: z
    .array(z.string())
    .min(1)
    .max(20)
    .optional()
    .describe('Groups that the alert is about, at most 20; absent if there are none'),
  people: z
    .array(z.string())
    .max(10)
    .optional()
    .describe('People with the most use; only if the organization allows that alerts name people'),
  url: url.describe('The page of the console about the subject; only with `CONSOLE_ORIGIN`'),
})

export const payloadSchema = z.strictObject({
  version: z.literal(1).describe('Version of this form; fields may be added to it'),
  type: z.enum(['alerts', 'test']).describe('`test` for a test of the channel'),
  id: id.describe('Id of the message; a message that is sent again has the same'),
  organization: z.strictObject({ id: z.uuid(), name: z.string() }).describe('The organization, by id and name'),
  rule: z.enum(['', ...ALERT_RULES]).describe('The rule that raised the alerts'),
  severity: severity.describe('The highest severity of the alerts'),
  title: z.string().min(1).describe('The message in one line'),
  created_at: time.describe('When the alerts were raised'),
  count: z.number().int().min(0).describe('Number of alerts in all parts'),
  part: z.number().int().min(1).describe('Number of this message among those about the same alerts, from 1'),
  parts: z.number().int().min(1).describe('Number of messages about the same alerts; each alert is in one of them'),
  alerts: z.array(alertSchema).max(50).describe('At most 50 alerts; the most severe are in the first part'),
  url: url.describe('The page of the console with the alerts; only with `CONSOLE_ORIGIN`'),
})

/** The fields of a message and of an alert with their descriptions. */
export function payloadFields(): readonly (readonly [name: string, about: string])[] {
  const fieldsOf = (shape: Readonly<Record<string, z.ZodType>>, prefix: string) =>
    Object.entries(shape).map(([name, schema]) => [`${prefix}${name}`, schema.description ?? ''] as const)
  return [...fieldsOf(payloadSchema.shape, ''), ...fieldsOf(alertSchema.shape, 'alerts[].')]
}
