import { z } from 'zod'
import { GRADES } from '../engine/assess/grade.ts'
import { WEIGHT_MAX } from '../engine/assess/rules.ts'
import { METHODS } from '../engine/kernel/event/event.ts'
import { ACCESS_NAMES_MAX } from '../engine/scan/access.ts'
import { DOMAINS_SHOWN_MAX, TOP_CLIENTS_MAX } from '../engine/scan/publish.ts'
import { DECISION_STATES } from '../engine/store/decisions.ts'
import { FRAMEWORK_IDS } from '../engine/store/framework.ts'
import { RECOMMENDATION_STATUSES } from '../engine/store/recommendations.ts'
import { ACCESS_KINDS } from '../registry/contact.ts'
import { ROLES } from '../registry/platform.ts'
import { PLATFORM_TYPES, type PlatformType } from '../registry/platform-type.ts'
import { LIMIT_MAX } from './page.ts'

/*
 * The schema of every response body, for the OpenAPI document, the tables of docs/reference/api.md
 * and the tests. The API neither creates nor validates bodies with these schemas, because bodies
 * are ready bytes (engine/store/published.ts). The contract test checks that bodies and schemas
 * agree.
 *
 * Objects are strict except `metadata` and the objects in it, to which v1 may add fields.
 */
const isoTime = z.iso.datetime({ precision: 0 })
const uuid = z.uuid()
const share = z.number().min(0).max(1)
const count = z.int().min(0)
const positive = z.int().min(1)
const percent = z.int().min(0).max(100)

const frameworkId = z.enum(FRAMEWORK_IDS).describe('Identifier of a framework.')
const grade = z.enum(GRADES).describe('A from 90, B from 80, C from 70, D from 60, F below.')

const score = z
  .strictObject({
    framework_id: frameworkId,
    overall_score: percent.describe('Weighted average of the categories, 0 to 100, rounded half up.'),
    grade,
    completed_at: isoTime.describe('When the assessment was completed, in UTC.'),
  })
  .describe('The latest completed assessment of one framework.')

const recommendation = z
  .strictObject({
    id: uuid.describe('UUID of the recommendation. It stays the same when the framework is assessed again.'),
    title: z.string().min(1).describe('What to do, in one line.'),
    priority: z.int().min(1).max(5).describe('1 is the highest priority, 5 the lowest.'),
    status: z
      .enum(RECOMMENDATION_STATUSES)
      .describe('Progress. The next request shows a change. Any status may follow any other.'),
    framework_id: frameworkId,
    category: z.string().min(1).describe('Name of the category within the framework.'),
  })
  .describe('An action for the organization, because an item of a completed assessment was not fully met.')

const summary = z
  .strictObject({
    platforms_discovered: count.describe('AI platforms that were detected.'),
    shadow_ai_count: count.describe("Detected AI platforms that are not on the organization's approved list."),
    overall_risk_score: percent.describe('Risk of all detected AI platforms together, 0 to 100.'),
  })
  .describe('The figures of a scan. They count platforms whose metadata.use is ai.')

const scan = z
  .strictObject({
    id: uuid.describe('UUID of the scan.'),
    organization_id: uuid.describe('UUID of the organization that the key belongs to.'),
    status: z.literal('completed').describe('Other scans are not shown.'),
    domain: z.string().min(1).describe('Domain of the organization that was scanned.'),
    started_at: isoTime.describe('When the scan started, in UTC.'),
    completed_at: isoTime.describe('When the scan was completed, in UTC.'),
    summary,
  })
  .describe('The most recent completed discovery scan.')

const risk = z
  .looseObject({
    score: percent.describe('Risk of the platform, 0 to 100.'),
    why: z.string().min(1).describe('The reason for this risk, in one line.'),
    terms: z
      .array(
        z.looseObject({
          input: z
            .string()
            .min(1)
            .describe('`data`, `control` or `law` of the class, a kind of fact, `unknown` or `limit`.'),
          value: z.string().min(1).describe('The row of the class, the fact, or the facts that are unknown.'),
          points: z.int().describe('What the term adds to the score.'),
          text: z.string().min(1).describe('The term as a sentence.'),
          source: z.url().optional().describe('Page of the vendor that states the fact.'),
          date: z.string().optional().describe('Day on which the page stated it.'),
        }),
      )
      .optional()
      .describe('The terms that add up to the score, if it is that of the built-in registry.'),
  })
  .describe('Risk of the platform, from the registry.')

const coverage = z
  .looseObject({
    visible_share: share
      .nullable()
      .describe('Share of the traffic whose names could be read, 0 to 1; null if no sensor has reported a packet.'),
  })
  .describe('How much of the traffic at the sensors was readable. It is the same for all platforms of a scan.')

const topClient = z
  .strictObject({
    client: z.string().min(1).describe('Address or pseudonym; :: if only the user is known.'),
    user: z.string().min(1).optional().describe('User name or pseudonym; absent if no log names a user.'),
    matches: positive.describe('Matches of the client within the evidence window, also blocked and touched ones.'),
    used_matches: positive
      .optional()
      .describe('Those that used the platform; absent if an earlier release stored some without that number.'),
    first_seen: isoTime.describe('When the first of these matches was within the evidence window, in UTC.'),
    last_seen: isoTime.describe('When the last one was, in UTC.'),
  })
  .describe('A client that used the platform.')

const access = z
  .looseObject({
    kind: z
      .enum(ACCESS_KINDS)
      .describe('web: a site. app: a desktop or mobile app. api: the API. tool: an editor, agent or other program.'),
    matches: positive.describe('Matches that show it.'),
    domains: z.array(z.string().min(1)).max(ACCESS_NAMES_MAX).describe('The most frequent names that show it.'),
  })
  .describe('How a platform was used, with the evidence.')

const metadata = z
  .looseObject({
    vendor: z.string().min(1).describe('Vendor of the platform.'),
    category: z.string().min(1).describe('Purpose of the platform.'),
    use: z
      .literal('ai')
      .describe('Always ai. Software with AI features, and platforms that nobody used, are not in this list.'),
    approved: z.boolean().describe("Whether it is on the organization's approved list."),
    decision: z
      .enum(DECISION_STATES)
      .describe(
        'What the organization decided: waiting (nothing yet), approved, rejected, or expired (the decision no longer counts). approved is true only for approved.',
      ),
    risk: risk,
    matches: positive.describe('Queries, handshakes and log lines that named the platform: the sum of the next three.'),
    used_matches: positive.describe('Matches that used the platform: allowed requests for its sites, apps and APIs.'),
    blocked_matches: positive.optional().describe('Matches that the logging device blocked; absent if none.'),
    touched_matches: positive
      .optional()
      .describe(
        'Matches that are neither: pictures, widgets, telemetry, updates, documentation and sign-in; absent if none.',
      ),
    bytes_sent: positive
      .optional()
      .describe('Bytes that clients sent, as far as logs count them; absent if none does.'),
    bytes_received: positive.optional().describe('Bytes that clients received; absent if no log counts them.'),
    methods: z
      .partialRecord(z.enum(METHODS), positive)
      .describe(
        'Matches by source of the name: dns, tls, quic or log. tls_inferred and quic_inferred: connections that hide their name, which the client had asked DNS for. dns_alias: the target of a CNAME.',
      ),
    roles: z
      .partialRecord(z.enum(ROLES), positive)
      .describe('Matches by role of the host: web, app, api, cdn, auth, telemetry or docs.'),
    access: z.array(access).max(ACCESS_KINDS.length).describe('How the platform was used, the most matches first.'),
    programmatic_clients: count
      .optional()
      .describe('Clients that requested the API, and no site or app of the vendor; absent if the API was not used.'),
    clients: positive.describe('Distinct addresses of clients.'),
    clients_error: share.describe('Relative standard error of the number of clients, 0 to 1; 0 while it is exact.'),
    days: positive.describe('Days (UTC) of the evidence window on which the platform was seen.'),
    first_seen: isoTime.describe('When the platform was first seen within the evidence window, in UTC.'),
    last_seen: isoTime.describe('When the platform was last seen, in UTC.'),
    domains: z.array(z.string().min(1)).max(DOMAINS_SHOWN_MAX).describe('The most frequent names.'),
    domains_total: positive.describe(
      'How many names are known: up to 64 of each day are kept, up to 512 are counted here.',
    ),
    coverage: coverage,
    top_clients: z
      .array(topClient)
      .max(TOP_CLIENTS_MAX)
      .optional()
      .describe(
        'The clients with the most matches; only if the organization has switched on clients in API responses.',
      ),
  })
  .describe('Explanation of the finding. Later releases of v1 may add fields: ignore fields that you do not know.')

const platform = z
  .strictObject({
    id: uuid.describe('UUID of the detection; it stays the same from scan to scan.'),
    platform_name: z.string().min(1).describe('Name of the platform.'),
    platform_type: z
      .enum(Object.keys(PLATFORM_TYPES) as [PlatformType, ...PlatformType[]])
      .describe('Classification of the platform.'),
    url: z.url().describe('Address of the platform.'),
    confidence: share.describe('Strength of the evidence, 0 to 1, up to four decimals.'),
    metadata,
    created_at: isoTime.describe('When the platform was first detected, in UTC.'),
  })
  .describe('An AI platform that was used.')

const categoryScore = z
  .strictObject({
    name: z.string().min(1).describe('Name of the category.'),
    weight: z
      .number()
      .min(0)
      .max(WEIGHT_MAX)
      .describe('Weight of the category in the overall score, up to three decimals; 0 if no item applies.'),
    score: percent
      .nullable()
      .describe('Weighted average of the items, 0 to 100, rounded half up; null if no item applies.'),
  })
  .describe('The score of one category of an assessment.')

const assessment = z
  .strictObject({
    id: uuid.describe('UUID of the assessment.'),
    framework_id: frameworkId,
    status: z.literal('completed').describe('Other assessments are not shown.'),
    overall_score: percent.describe('Weighted average of the categories, 0 to 100, rounded half up.'),
    grade,
    started_at: isoTime.describe('When the assessment was created, in UTC.'),
    completed_at: isoTime.describe('When the assessment was completed, in UTC.'),
    categories: z.array(categoryScore).min(1).describe('The categories, in the order of the framework.'),
  })
  .describe('A completed assessment.')

const scores = z
  .strictObject({
    scores: z
      .array(score)
      .max(FRAMEWORK_IDS.length)
      .describe('One for each framework with a completed assessment, in the order of the frameworks.'),
  })
  .describe('Answer of GET /api/v1/scores.')

const recommendations = z
  .strictObject({
    recommendations: z
      .array(recommendation)
      .max(LIMIT_MAX)
      .describe('A page of the list; by priority, then newest first.'),
  })
  .describe('Answer of GET /api/v1/recommendations.')

const discovery = z
  .strictObject({
    scan: scan.nullable().describe('The same on every page; null if no scan has completed.'),
    platforms: z.array(platform).max(LIMIT_MAX).describe('A page of the list; the highest confidence first.'),
  })
  .describe('Answer of GET /api/v1/discovery.')

const assessments = z
  .strictObject({
    assessments: z.array(assessment).max(LIMIT_MAX).describe('A page of the list; the last completed first.'),
  })
  .describe('Answer of GET /api/v1/assessments.')

const error = z
  .strictObject({ error: z.string().min(1).describe('What is wrong and, if useful, what is expected.') })
  .describe('Answer to every rejected request.')

/** By name in the OpenAPI document. */
export const ANSWERS = {
  Scores: scores,
  Recommendations: recommendations,
  Discovery: discovery,
  Assessments: assessments,
  Error: error,
  Score: score,
  Recommendation: recommendation,
  Scan: scan,
  ScanSummary: summary,
  Platform: platform,
  PlatformMetadata: metadata,
  PlatformRisk: risk,
  Coverage: coverage,
  Assessment: assessment,
  CategoryScore: categoryScore,
  FrameworkId: frameworkId,
  Grade: grade,
} as const
export type AnswerName = keyof typeof ANSWERS
