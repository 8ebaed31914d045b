import type { Command } from 'commander'
import { workOf } from '../../assess/work.ts'
import { itemIn } from '../assessments.ts'
import { ASSESSMENT_ID } from './assessment-file.ts'
import { changeOptions, ofOrganization, show, withStore } from './context.ts'

interface AssignFlags {
  readonly org?: string
  readonly owner?: string
  readonly due?: string
  readonly link?: readonly string[]
}

/** Sets who works on an item, until when, and the addresses of its evidence. */
export function addAssign(assessment: Command): void {
  const assign = ofOrganization(
    changeOptions(
      assessment
        .command('assign')
        .description('Assign an item of an assessment to a person, with a due date and links')
        .argument('<id>', ASSESSMENT_ID)
        .argument('<item>', 'Id of the item'),
    ),
  )
    .option('--owner <name>', "Set the owner, by name or e-mail address; '' for nobody")
    .option('--due <day>', "Set the due date, such as 2026-12-01; '' for none")
    .option('--link <urls...>', "Replace the links; '' for none")
  assign.action((id: string, item: string, { org, owner, due, link }: AssignFlags) =>
    withStore(assign, ({ store, administration }) => {
      const given = {
        ...(owner === undefined ? {} : { owner }),
        ...(due === undefined ? {} : { dueOn: due }),
        ...(link === undefined ? {} : { links: link.filter((each) => each !== '') }),
      }
      const changed = administration.assessments.assign(administration.organization(org), id, item, given)
      const found = itemIn(store.assessments.categories(changed), item)
      const { owner: ownerNow, dueOn, links } = workOf(found)
      show(assign, {
        columns: [
          ['Item', 'item_id'],
          ['Check', 'title', { hide: 1, wrap: true }],
          ['Owner', 'owner'],
          ['Due', 'due_on'],
          ['Links', 'links', { wrap: true }],
        ],
        rows: [{ item_id: found.id, title: found.title, owner: ownerNow, due_on: dueOn, links }],
      })
    }),
  )
}
