import type { Command } from 'commander'
import { AssessmentFileFault } from '../../assess/file-fault.ts'
import type { ReadFramework } from '../../assess/framework-file.ts'
import { readAssessmentFile } from '../../assess/transfer.ts'
import type { OwnFramework } from '../../store/own-frameworks.ts'
import { reportFileFault } from './assessment-file.ts'
import { changeOptions, ofOrganization, sharedOptions, show, timeText, withStore } from './context.ts'

/** posture-admin framework add | validate | list | remove */
export function addFrameworkCommands(framework: Command): void {
  const add = ofOrganization(
    changeOptions(
      framework
        .command('add')
        .description('Add a framework from a YAML file, or replace the one with the same id')
        .argument('<file>', 'YAML or JSON file; - is standard input'),
    ),
  )
  add.action(async (path: string, options: { org?: string }) => {
    const read = await readOrReport(add, path)
    if (read === undefined) return
    await withStore(add, ({ administration }) => {
      print(add, [administration.frameworks.add(administration.organization(options.org), read)])
    })
  })

  const validate = framework
    .command('validate')
    .description('Check a framework file without adding it')
    .argument('<file>', 'YAML or JSON file; - is standard input')
  validate.action(async (path: string) => {
    const read = await readOrReport(validate, path)
    if (read === undefined) return
    const { categories } = read.template
    const items = categories.reduce((sum, category) => sum + category.items.length, 0)
    process.stdout.write(`${read.id}: valid; items: ${items}, categories: ${categories.length}\n`)
  })

  const list = ofOrganization(sharedOptions(framework.command('list').description('List own frameworks')))
  list.action((options: { org?: string }) =>
    withStore(list, ({ store, administration }) => {
      print(list, store.ownFrameworks.ofOrganization(administration.organization(options.org).id))
    }),
  )

  const remove = ofOrganization(
    changeOptions(
      framework
        .command('remove')
        .description('Remove an own framework and keep its assessments')
        .argument('<id>', 'Id of the framework'),
    ),
  )
  remove.action((id: string, options: { org?: string }) =>
    withStore(remove, ({ administration }) => {
      print(remove, [administration.frameworks.remove(administration.organization(options.org), id)])
    }),
  )
}

/** Prints each error of the file on its own line, and then returns undefined. */
async function readOrReport(command: Command, path: string): Promise<ReadFramework | undefined> {
  // The YAML parser is loaded only here, because few commands need it.
  const { readFrameworkFile } = await import('../../assess/framework-file.ts')
  try {
    return readFrameworkFile(await readAssessmentFile(path))
  } catch (error) {
    if (!(error instanceof AssessmentFileFault)) throw error
    reportFileFault(command, path, error)
    return undefined
  }
}

function print(command: Command, frameworks: readonly OwnFramework[]): void {
  show(command, {
    columns: [
      ['Id', 'framework_id'],
      ['Name', 'name', { wrap: true }],
      ['Categories', 'categories', { hide: 2 }],
      ['Items', 'items'],
      ['Version', 'version', { hide: 1 }],
      ['Added', 'added_at', { hide: 3 }],
    ],
    rows: frameworks.map(({ id, name, categories, items, version, addedAtMs }) => ({
      framework_id: id,
      ...{ name, categories, items, version, added_at: timeText(addedAtMs) },
    })),
  })
}
