import { setImmediate as othersTurn } from 'node:timers/promises'
import type { Command } from 'commander'
import { Fault, isFault } from '../../process/error-codes.ts'
import { canAsk, Questions } from '../../process/questions.ts'
import type { Organization } from '../../store/organizations.ts'
import type { Removal } from '../../store/removals.ts'
import type { Store } from '../../store/store.ts'
import { AuditExport } from '../audit-export.ts'
import { type AdminContext, changeOptions, show, timeText, withStore } from './context.ts'
import { longWork } from './long-work.ts'

interface Options {
  readonly confirm?: string
  readonly auditFile?: string
}

/** posture-admin organization remove */
export function addOrganizationRemove(organization: Command): void {
  const remove = changeOptions(
    organization
      .command('remove')
      .description('Remove an organization with all its data, keys and tokens permanently')
      .argument('<name>', 'Name or id of the organization'),
  )
    .option('--confirm <name>', 'Confirm the removal with the name of the organization, without a prompt')
    .option('--audit-file <file>', 'Write the audit log to this new file first; by default audit-NAME-TIME.jsonl')
  remove.action((name: string, options: Options) =>
    withStore(remove, async (context) => {
      const removal = unfinished(context, name) ?? (await removed(context, name, options))
      if (removal !== undefined) await deleteRecords(remove, context.store, removal)
    }),
  )
}

/**
 * A removal that was interrupted is finished without a question: its organization is gone already.
 */
function unfinished({ store, administration }: AdminContext, name: string): Removal | undefined {
  try {
    administration.organization(name)
    return undefined
  } catch (error) {
    if (!isFault(error, 'NOT_FOUND')) throw error
    const removal = store.removals.all().find((each) => each.name === name || each.organizationId === name)
    if (removal === undefined) throw error
    return removal
  }
}

async function removed(
  { store, administration, clock }: AdminContext,
  name: string,
  { confirm, auditFile }: Options,
): Promise<Removal> {
  const organization = administration.organization(name)
  if (confirm === undefined) await askForName(store, organization)
  else if (confirm !== organization.name) {
    throw new Fault('USAGE', `--confirm: expected the name ${JSON.stringify(organization.name)}; nothing was removed`)
  }
  const time = timeText(clock.nowMs())?.replaceAll(':', '-')
  const file = new AuditExport(
    auditFile ?? `audit-${organization.name.replaceAll(/[^\w.-]+/g, '_')}-${time}.jsonl`,
    organization.name,
  )
  try {
    const removal = administration.organizations.remove(organization, (entries) => file.write(entries))
    process.stderr.write(`posture-admin: the audit log is in ${file.path}\n`)
    return removal
  } catch (error) {
    // Nothing was removed, unless only the last lines of the export could not be written.
    if (!store.removals.has(organization.id)) file.discard()
    throw error
  } finally {
    file.close()
  }
}

async function askForName(store: Store, { id, name }: Organization): Promise<void> {
  if (!canAsk()) {
    throw new Fault('USAGE', `--confirm is required: the name of the organization, ${JSON.stringify(name)}`)
  }
  const counts = [
    `${store.apiKeys.ofOrganization(id).length} API keys`,
    `${store.monitoringTokens.ofOrganization(id).length} monitoring tokens`,
    `${store.scans.ofOrganization(id).length} scans`,
    `${store.assessments.ofOrganization(id).length} assessments`,
    `${store.buffer.count(id)} buffered events`,
  ]
  process.stderr.write(`${name} has ${counts.join(', ')}. All of it will be deleted permanently.\n`)
  const questions = new Questions()
  try {
    await questions.ask('Name of the organization, to confirm: ', (answer) => {
      return answer === name ? { value: undefined } : 'That is not its name; Ctrl-C cancels'
    })
  } finally {
    questions.close()
  }
}

/** The organization is gone already; its records go in bounded transactions, while others write. */
async function deleteRecords(command: Command, store: Store, removal: Removal): Promise<void> {
  const canceled = `${removal.name} is removed; the service deletes the rest of its records within a day`
  const total = store.environment.read(() => store.removals.left(removal))
  const records = await longWork(canceled, async (onStep, signal) => {
    let deleted = 0
    for (const step of store.removals.finish(removal)) {
      deleted += step
      onStep('delete', deleted, Math.max(total, deleted))
      await othersTurn()
      if (signal.aborted) return undefined
    }
    return deleted
  })
  if (records === undefined) return
  show(command, {
    columns: [
      ['Removed', 'name', { wrap: true }],
      ['Records', 'records'],
      ['Id', 'id', { hide: 1 }],
    ],
    rows: [{ id: removal.organizationId, name: removal.name, records }],
  })
}
