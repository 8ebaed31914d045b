import { Ajv } from 'ajv'
import t from 'tap'
import { reporterOf } from '../../../engine/export/finding-event.ts'
import { ocsfFinding, ocsfLine } from '../../../engine/export/ocsf.ts'
import { anyFinding, DEEPSEEK, FINDING } from '../../support/finding-events.ts'
import * as fc from '../../support/property.ts'

const REPORTER = reporterOf('1.0.0')

const text = { type: 'string' } as const
const time = { type: 'integer', minimum: 0 } as const

function object(required: Readonly<Record<string, unknown>>, optional: Readonly<Record<string, unknown>> = {}) {
  return {
    type: 'object',
    required: Object.keys(required),
    properties: { ...required, ...optional },
    additionalProperties: false,
  }
}

/**
 * The rules of a Detection Finding (OCSF 1.5.0 to 1.8.0) for the attributes that we write: types,
 * enumerations, and what is required. Every other attribute is an error.
 */
const DETECTION_FINDING = object(
  {
    activity_id: { enum: [1, 2, 3] },
    category_uid: { const: 2 },
    class_uid: { const: 2004 },
    type_uid: { const: 200401 },
    time,
    severity_id: { enum: [1, 2, 3, 4, 5] },
    metadata: object(
      { version: { const: '1.5.0' }, product: object({ name: text, vendor_name: text, version: text }) },
      { uid: text, tenant_uid: text, log_name: text },
    ),
    finding_info: object(
      { uid: text },
      {
        ...{ title: text, desc: text, types: { type: 'array', items: text }, created_time: time },
        ...{ first_seen_time: time, last_seen_time: time, src_url: text },
        analytic: object({ type_id: { const: 1 }, name: text, type: { const: 'Rule' } }),
      },
    ),
  },
  {
    ...{ activity_name: text, category_name: text, class_name: text, type_name: text },
    severity: { enum: ['Informational', 'Low', 'Medium', 'High', 'Critical'] },
    is_alert: { type: 'boolean' },
    message: text,
    status_id: { enum: [1, 2, 3] },
    status: { enum: ['New', 'In Progress', 'Suppressed'] },
    confidence_score: { type: 'integer', minimum: 0, maximum: 100 },
    confidence_id: { enum: [1, 2, 3] },
    confidence: { enum: ['Low', 'Medium', 'High'] },
    risk_score: { type: 'integer', minimum: 0, maximum: 100 },
    risk_level_id: { enum: [0, 1, 2, 3, 4] },
    risk_level: { enum: ['Info', 'Low', 'Medium', 'High', 'Critical'] },
    resources: { type: 'array', items: object({ uid: text, name: text }, { type: text, data: { type: 'object' } }) },
    evidences: {
      type: 'array',
      minItems: 1,
      items: {
        ...object(
          {},
          { src_endpoint: { type: 'object' }, user: object({ name: text }), dst_endpoint: { type: 'object' } },
        ),
        anyOf: [{ required: ['src_endpoint'] }, { required: ['dst_endpoint'] }],
      },
    },
    observables: {
      type: 'array',
      minItems: 1,
      items: object({ name: text, type_id: { enum: [1, 2, 4] } }, { type: text, value: text }),
    },
    unmapped: { type: 'object' },
  },
)

t.test('any finding is a Detection Finding', async (t) => {
  const validate = new Ajv({ allErrors: true, strictRequired: false }).compile(DETECTION_FINDING)
  fc.assert(
    fc.property(anyFinding, (finding) => {
      const line = ocsfLine(finding, REPORTER)
      if (/[\n\r]/.test(line)) return false
      if (!validate(JSON.parse(line))) throw new Error(JSON.stringify(validate.errors))
      return true
    }),
  )
  const { class_uid: _, ...without } = JSON.parse(ocsfLine(FINDING, REPORTER))
  t.notOk(validate(without), 'the check finds a missing attribute')
})

t.test('a platform in use', async (t) => {
  const finding = ocsfFinding({ ...FINDING, clients: [{ address: '10.0.0.7', user: 'ada' }] }, REPORTER)
  t.match(finding, {
    ...{ class_uid: 2004, type_uid: 200401, time: FINDING.timeMs, severity_id: 5, severity: 'Critical' },
    ...{ status_id: 1, confidence_score: 71, confidence_id: 3, risk_score: 85, risk_level_id: 4 },
    finding_info: { uid: FINDING.id, title: 'AI platform in use', types: ['platform.in-use'] },
    resources: [{ uid: 'deepseek', name: 'DeepSeek', type: 'llm_chat' }],
    observables: [
      { type_id: 1, value: 'chat.deepseek.com' },
      { type_id: 1, value: 'deepseek.com' },
      { type_id: 2, value: '10.0.0.7' },
      { type_id: 4, value: 'ada' },
    ],
    unmapped: { organization: 'Acme', decision: 'waiting', clients: 3, matches: 41 },
  })
  const approved = ocsfFinding({ ...FINDING, platform: { ...DEEPSEEK, decision: 'approved' } }, REPORTER)
  t.match(approved, { status_id: 3, status: 'Suppressed' })
})
