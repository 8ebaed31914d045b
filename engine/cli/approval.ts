import { z } from 'zod'
import type { Platform } from '../../registry/platform.ts'
import { ratedRisk } from '../../registry/risk-sum.ts'
import type { DecisionTerms } from '../admin/approvals.ts'
import { systemClock } from '../kernel/process/clock.ts'
import { futureTime } from '../kernel/process/duration.ts'
import type { Shown } from '../kernel/process/table.ts'
import { DECISION_NOTE_BYTES_MAX } from '../limits.ts'
import { type Decision, decisionState } from '../store/decisions.ts'
import { NAME_BYTES_MAX } from '../store/organizations.ts'
import { argument, type Commands, change, option, query, table } from './command.ts'
import type { AdminContext } from './context.ts'
import { waitForScan } from './scan.ts'

const PLATFORMS = argument('<platform...>', 'Ids or names of platforms', z.array(z.string()))

/** The use case checks the text; here only its length, so that the error names the option. */
function lineOf(bytesMax: number) {
  const isWithin = (text: string): boolean => text !== '' && Buffer.byteLength(text) <= bytesMax
  return z.string().refine(isWithin, `expected 1 to ${bytesMax} bytes`).optional()
}

const DECISION = {
  platforms: PLATFORMS,
  note: option('--note <text>', 'Record the reason', lineOf(DECISION_NOTE_BYTES_MAX)),
  owner: option(
    '--owner <name>',
    'Name who is responsible for the use, by name or e-mail address',
    lineOf(NAME_BYTES_MAX),
  ),
  expiresAtMs: option(
    '--expires <time>',
    'Expire the decision after a duration such as 90d, or at a time in UTC; then the platform waits for a decision',
    futureTime(() => systemClock.nowMs()).optional(),
  ),
}

const PLAN = option('--plan <name>', 'Count the risk of this plan, not of the worst', lineOf(NAME_BYTES_MAX))

/** A platform that was removed from the registry has only an id. */
type Row = Decision & { readonly platform: Platform | undefined; readonly nowMs: number }

const decisions = table<Row>([
  [
    'Platform',
    'platform_name',
    {
      text: (name) => (name === null ? '(not in the registry)' : String(name)),
      of: ({ platform }) => platform?.name ?? null,
    },
  ],
  ['Decision', 'decision', { of: (row) => decisionState(row, row.nowMs) }],
  ['Expires', 'expires_at', { hide: 1 }],
  ['Owner', 'owner', { hide: 2, wrap: true }],
  ['Plan', 'plan', { hide: 3, of: ({ plan = null }) => plan }],
  ['Note', 'note', { hide: 4, wrap: true }],
  [null, 'risk', { of: ({ platform, plan }) => platform && ratedRisk(platform, plan) }],
  ['Risk', 'risk.score', { hide: 5 }],
  ['Decided', 'decided_at', { hide: 7 }],
  ['By', 'decided_by', { hide: 8 }],
  ['Vendor', 'vendor', { hide: 10, of: ({ platform }) => platform?.vendor ?? null }],
  ['Type', 'platform_type', { hide: 9, of: ({ platform }) => platform?.platformType ?? null }],
  ['Id', 'id', { hide: 6, of: ({ platformId }) => platformId }],
])

function shown({ store, registry, clock, organization: { id } }: AdminContext): Shown {
  const byId = new Map(registry.catalogOf(id).platforms.map((platform) => [platform.id, platform]))
  const nowMs = clock.nowMs()
  const all = store.decisions.ofOrganization(id).filter(({ kind }) => kind !== 'withdrawn')
  return decisions(all.map((decision) => ({ ...decision, platform: byId.get(decision.platformId), nowMs })))
}

function decide(
  verb: 'add' | 'reject' | 'remove',
  about: string,
  params: Pick<typeof DECISION, 'platforms'> & Partial<typeof DECISION> & { readonly plan?: typeof PLAN },
) {
  return change(about, {
    params,
    async run(context, { platforms, ...given }) {
      const { administration, organization, registry } = context
      const catalog = registry.catalogOf(organization.id)
      await waitForScan(
        context,
        administration.approvals[verb](organization, catalog, platforms, given as DecisionTerms).scan,
      )
      return shown(context)
    },
  })
}

export const commands: Commands = {
  add: decide('add', 'Approve platforms and update the findings', { ...DECISION, plan: PLAN }),
  reject: decide('reject', 'Reject platforms and update the findings', DECISION),
  remove: decide('remove', 'Withdraw approvals and rejections, and update the findings', { platforms: PLATFORMS }),
  list: query('List approved and rejected platforms', { run: shown }),
}
