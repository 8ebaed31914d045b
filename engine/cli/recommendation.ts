import { byPriority } from '../assess/publish.ts'
import { oneOf } from '../kernel/process/settings.ts'
import { RECOMMENDATION_STATUSES, type Recommendation } from '../store/recommendations.ts'
import { FRAMEWORK, frameworkOption } from './assessment-file.ts'
import { argument, type Commands, change, defined, option, query, table } from './command.ts'

const recommendations = table<Recommendation>([
  ['Id', 'id'],
  ['Priority', 'priority', { hide: 2 }],
  ['Status', 'status', { hide: 1 }],
  [null, 'reason', { of: ({ reason = '' }) => reason }],
  ['Framework', 'framework_id', { hide: 3 }],
  ['Item', 'item_id', { hide: 4 }],
  ['Category', 'category', { hide: 5 }],
  ['Owner', 'owner', { hide: 6, wrap: true }],
  ['Due', 'due_on', { hide: 7, of: ({ dueOn = '' }) => dueOn }],
  ['Recommendation', 'title', { wrap: true }],
  [null, 'created_at'],
  [null, 'status_changed_at'],
])
const ID = argument('<id>', 'Id of the recommendation, or at least its first 8 characters')

export const commands: Commands = {
  list: query('List recommendations in the order of the API', {
    params: {
      status: option('--status <status>', 'Show only this status', oneOf(RECOMMENDATION_STATUSES).optional()),
      frameworkId: frameworkOption('Show only this framework', FRAMEWORK.optional()),
      owner: option('--owner <name>', "Show only those of this owner; '' for those without one"),
    },
    run({ store, organization }, { status, frameworkId, owner }) {
      const wanted = Object.entries(defined({ status, frameworkId, owner }))
      const all = store.recommendations.ofOrganization(organization.id)
      const found = all.filter((each) => wanted.every(([name, value]) => each[name as keyof Recommendation] === value))
      return recommendations(found.sort(byPriority))
    },
  }),
  set: change('Change the status of a recommendation', {
    params: {
      id: ID,
      status: argument('<status>', 'New status', oneOf(RECOMMENDATION_STATUSES)),
      reason: option('--reason <text>', 'Give the reason; required for dismissed'),
    },
    run: ({ administration, organization }, { id, status, reason }) =>
      recommendations([administration.recommendations.setStatus(organization, id, status, reason)]),
  }),
  assign: change('Assign a recommendation to a person, with a due date', {
    params: {
      id: ID,
      owner: argument('<owner>', "Name or e-mail address; '' for nobody"),
      dueOn: option('--due <day>', "Set the due date, such as 2026-12-01; '' for none"),
    },
    run: ({ administration, organization }, { id, owner, dueOn }) =>
      recommendations([administration.recommendations.assign(organization, id, { owner, ...defined({ dueOn }) })]),
  }),
}
