import { AssessmentFileFault } from '../assess/file-fault.ts'
import type { ReadFramework } from '../assess/framework-file.ts'
import { readAssessmentFile } from '../assess/transfer.ts'
import type { OwnFramework } from '../store/own-frameworks.ts'
import { reportFileFault } from './assessment-file.ts'
import { argument, type Commands, change, plain, query, table } from './command.ts'

const frameworks = table<OwnFramework>([
  ['Id', 'framework_id', { of: ({ id }) => id }],
  ['Name', 'name', { wrap: true }],
  ['Categories', 'categories', { hide: 2 }],
  ['Items', 'items'],
  ['Version', 'version', { hide: 1 }],
  ['Added', 'added_at', { hide: 3 }],
])
const FILE = argument('<file>', 'YAML or JSON file; - is standard input')

export const commands: Commands = {
  add: change('Add a framework from a YAML file, or replace the one with the same id', {
    params: { file: FILE },
    async around({ file }, work: (read: ReadFramework) => Promise<void>) {
      const read = await readOrReport(file)
      if (read !== undefined) await work(read)
    },
    run: ({ administration, organization }, _, read) => frameworks([administration.frameworks.add(organization, read)]),
  }),
  validate: plain('Check a framework file without adding it', { file: FILE }, async ({ file }, output) => {
    const read = await readOrReport(file)
    if (read === undefined) return
    const { categories } = read.template
    const items = categories.reduce((sum, category) => sum + category.items.length, 0)
    output.print(`${read.id}: valid; items: ${items}, categories: ${categories.length}\n`)
  }),
  list: query('List own frameworks', {
    run: ({ store, organization }) => frameworks(store.ownFrameworks.ofOrganization(organization.id)),
  }),
  remove: change('Remove an own framework and keep its assessments', {
    params: { id: argument('<id>', 'Id of the framework') },
    run: ({ administration, organization }, { id }) => frameworks([administration.frameworks.remove(organization, id)]),
  }),
}

/** Prints each error of the file on its own line, and then returns undefined. */
async function readOrReport(path: string): Promise<ReadFramework | undefined> {
  // The YAML parser is loaded only here, because few commands need it.
  const { readFrameworkFile } = await import('../assess/framework-file.ts')
  try {
    return readFrameworkFile(await readAssessmentFile(path))
  } catch (error) {
    if (!(error instanceof AssessmentFileFault)) throw error
    reportFileFault(path, error)
    return undefined
  }
}
