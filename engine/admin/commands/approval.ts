import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Catalog } from '../../../registry/catalog.ts'
import { DECISION_NOTE_BYTES_MAX } from '../../limits.ts'
import { systemClock } from '../../process/clock.ts'
import { futureOption } from '../../process/duration.ts'
import { type Decision, decisionState } from '../../store/decisions.ts'
import { NAME_BYTES_MAX, type Organization } from '../../store/organizations.ts'
import type { ApprovalChange, DecisionTerms } from '../approvals.ts'
import {
  type AdminContext,
  changeOptions,
  ofOrganization,
  sharedOptions,
  show,
  timeText,
  withStore,
} from './context.ts'
import { waitForScan } from './scan.ts'

interface Options {
  readonly org?: string
}

interface TermsOptions extends Options {
  readonly note?: string
  readonly owner?: string
  readonly expires?: number
}

/** posture-admin approval add | reject | remove | list */
export function addApprovalCommands(approval: Command): void {
  const add = decisionOf(approval, 'add', 'Approve platforms and update the findings')
  add.action((platforms: string[], options: TermsOptions) =>
    withStore(add, (context) =>
      change(add, context, options, (organization, catalog) =>
        context.administration.approvals.add(organization, catalog, platforms, termsOf(options)),
      ),
    ),
  )

  const reject = decisionOf(approval, 'reject', 'Reject platforms and update the findings')
  reject.action((platforms: string[], options: TermsOptions) =>
    withStore(reject, (context) =>
      change(reject, context, options, (organization, catalog) =>
        context.administration.approvals.reject(organization, catalog, platforms, termsOf(options)),
      ),
    ),
  )

  const remove = approval
    .command('remove')
    .description('Withdraw approvals and rejections, and update the findings')
    .argument('<platform...>', 'Ids or names of platforms')
  ofOrganization(changeOptions(remove))
  remove.action((platforms: string[], options: Options) =>
    withStore(remove, (context) =>
      change(remove, context, options, (organization, catalog) =>
        context.administration.approvals.remove(organization, catalog, platforms),
      ),
    ),
  )

  const list = ofOrganization(
    sharedOptions(approval.command('list').description('List approved and rejected platforms')),
  )
  list.action((options: Options) =>
    withStore(list, (context) => {
      print(list, context, context.administration.organization(options.org))
    }),
  )
}

function decisionOf(approval: Command, name: string, about: string): Command {
  const command = approval.command(name).description(about).argument('<platform...>', 'Ids or names of platforms')
  return ofOrganization(changeOptions(command))
    .addOption(
      new Option('--note <text>', 'Record the reason').argParser((text) => lineOf(text, DECISION_NOTE_BYTES_MAX)),
    )
    .addOption(
      new Option('--owner <name>', 'Name who is responsible for the use, by name or e-mail address').argParser((text) =>
        lineOf(text, NAME_BYTES_MAX),
      ),
    )
    .addOption(
      new Option(
        '--expires <time>',
        'Expire the decision after a duration such as 90d, or at a time in UTC; then the platform waits for a decision',
      ).argParser(futureOption(() => systemClock.nowMs())),
    )
}

/** The use case checks the text; here only its length, so that the error names the option. */
function lineOf(text: string, bytesMax: number): string {
  if (Buffer.byteLength(text) <= bytesMax && text !== '') return text
  throw new InvalidArgumentError(`expected 1 to ${bytesMax} bytes`)
}

function termsOf({ note, owner, expires }: TermsOptions): DecisionTerms {
  return { note, owner, expiresAtMs: expires }
}

async function change(
  command: Command,
  context: AdminContext,
  options: Options,
  make: (organization: Organization, catalog: Catalog) => ApprovalChange,
): Promise<void> {
  const organization = context.administration.organization(options.org)
  const { scan } = make(organization, context.registry.catalogOf(organization.id))
  await waitForScan(context, scan)
  print(command, context, organization)
}

function print(command: Command, { store, registry, clock }: AdminContext, { id: organizationId }: Organization): void {
  const byId = new Map(registry.catalogOf(organizationId).platforms.map((platform) => [platform.id, platform]))
  const rowOf = (decision: Decision) => {
    // A platform that was removed from the registry has only an id.
    const platform = byId.get(decision.platformId)
    return {
      id: decision.platformId,
      platform_name: platform?.name ?? null,
      platform_type: platform?.platformType ?? null,
      vendor: platform?.vendor ?? null,
      risk: platform?.risk ?? null,
      decision: decisionState(decision, clock.nowMs()),
      note: textOf(decision.note),
      owner: textOf(decision.owner),
      expires_at: timeText(decision.expiresAtMs),
      decided_by: decision.decidedBy,
      decided_at: timeText(decision.decidedAtMs),
    }
  }
  show(command, {
    columns: [
      ['Platform', 'platform_name', { text: (name) => (name === null ? '(not in the registry)' : String(name)) }],
      ['Decision', 'decision'],
      ['Expires', 'expires_at', { hide: 1 }],
      ['Owner', 'owner', { hide: 2, wrap: true }],
      ['Note', 'note', { hide: 3, wrap: true }],
      ['Risk', 'risk.score', { hide: 4 }],
      ['Decided', 'decided_at', { hide: 6 }],
      ['By', 'decided_by', { hide: 7 }],
      ['Vendor', 'vendor', { hide: 9 }],
      ['Type', 'platform_type', { hide: 8 }],
      ['Id', 'id', { hide: 5 }],
    ],
    rows: store.decisions
      .ofOrganization(organizationId)
      .filter(({ kind }) => kind !== 'withdrawn')
      .map(rowOf),
  })
}

function textOf(text: string): string | null {
  return text === '' ? null : text
}
