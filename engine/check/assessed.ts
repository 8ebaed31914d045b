import { ASSESSED_LISTS, elementsOf } from '../assess/publish.ts'
import { ASSESSMENT_STATUSES, type Assessment, type AssessmentCategory } from '../store/assessments.ts'
import type { TemplateCategory } from '../store/framework.ts'
import { UUID_BYTES, uuidBytes } from '../store/keys.ts'
import type { Organization } from '../store/organizations.ts'
import type { OwnFramework } from '../store/own-frameworks.ts'
import { PublishedList, packList, tagOf } from '../store/published.ts'
import { RECOMMENDATION_STATUSES, type Recommendation } from '../store/recommendations.ts'
import { packed, type StoreWalk } from './walk.ts'

/** Checks assessments and recommendations, and that the published lists match them. */
export function checkAssessed(walk: StoreWalk): void {
  checkAssessments(walk)
  checkAnswers(walk)
  checkRecommendations(walk)
  checkFrameworks(walk)
  checkLists(walk)
}

function checkAssessments(walk: StoreWalk): void {
  const answers = walk.store.environment.table('assessment-answers')
  const form = { keyBytes: 2 * UUID_BYTES, open: packed<Assessment>('assessment') }
  walk.table('assessments', form, ({ key, value, organizationId }) => {
    const { id, status, completedAtMs, completion, result } = value
    const wrong = (found: string, expected: string): void =>
      walk.wrong('assessments', organizationId, `${found} of ${id}`, expected)
    const own = Buffer.concat([uuidBytes(value.organizationId), uuidBytes(id)])
    if (!own.equals(key)) wrong('the record', 'the one in its key')
    if (!ASSESSMENT_STATUSES.includes(status)) wrong(`the status ${status}`, ASSESSMENT_STATUSES.join(', '))
    if (!answers.doesExist(key)) wrong('no answers', 'a record of them')
    const isCompleted = completedAtMs > 0 && completion > 0 && result !== null
    const isOpen = completedAtMs === 0 && completion === 0 && result === null
    if (status === 'completed' ? isCompleted : isOpen) return
    const found = `${status}, completed at ${completedAtMs} as the ${completion}. ${result === null ? 'without' : 'with'} a result`
    wrong(found, status === 'completed' ? 'time, number and result' : 'none of the three')
  })
}

function checkAnswers(walk: StoreWalk): void {
  const assessments = walk.store.environment.table('assessments')
  const form = { keyBytes: 2 * UUID_BYTES, open: packed<readonly AssessmentCategory[]>('answers of an assessment') }
  walk.table('assessment-answers', form, ({ key, organizationId }) => {
    if (assessments.doesExist(key)) return
    walk.wrong('assessment-answers', organizationId, `answers at ${key.toString('hex')}`, 'an assessment there')
  })
}

function checkRecommendations(walk: StoreWalk): void {
  const form = { keyBytes: UUID_BYTES, keyIsLonger: true, open: packed<Recommendation>('recommendation') }
  walk.table('recommendations', form, ({ key, value, organizationId }) => {
    const { frameworkId, itemId, status, priority } = value
    const wrong = (found: string, expected: string): void =>
      walk.wrong('recommendations', organizationId, found, expected)
    const own = [uuidBytes(value.organizationId), Buffer.from(`${frameworkId}\0${itemId.toLowerCase()}`)]
    if (!Buffer.concat(own).equals(key)) wrong(`the one of ${frameworkId} ${itemId}`, 'the one in its key')
    if (!RECOMMENDATION_STATUSES.includes(status)) wrong(`the status ${status}`, RECOMMENDATION_STATUSES.join(', '))
    if (!(Number.isInteger(priority) && priority >= 1 && priority <= 5)) wrong(`the priority ${priority}`, '1 to 5')
  })
}

function checkFrameworks(walk: StoreWalk): void {
  const items = walk.store.environment.table('own-framework-items')
  const frameworks = walk.store.environment.table('own-frameworks')
  const form = { keyBytes: UUID_BYTES, keyIsLonger: true }
  walk.table(
    'own-frameworks',
    { ...form, open: packed<OwnFramework>('own framework') },
    ({ key, value, organizationId }) => {
      const wrong = (found: string, expected: string): void =>
        walk.wrong('own-frameworks', organizationId, found, expected)
      const own = Buffer.concat([uuidBytes(value.organizationId), Buffer.from(value.id)])
      if (!own.equals(key)) wrong(`the record of ${value.id}`, 'the one in its key')
      if (!items.doesExist(key)) wrong(`no items of ${value.id}`, 'a record of them')
    },
  )
  const open = packed<readonly TemplateCategory[]>('items of an own framework')
  walk.table('own-framework-items', { ...form, open }, ({ key, organizationId }) => {
    if (frameworks.doesExist(key)) return
    walk.wrong('own-framework-items', organizationId, `items at ${key.toString('hex')}`, 'a framework there')
  })
}

/** One organization at a time: the lists of one are bounded. */
function checkLists(walk: StoreWalk): void {
  const { store } = walk
  const form = { keyBytes: UUID_BYTES, open: packed<Organization>('organization') }
  walk.table('organizations', form, ({ organizationId }) => {
    for (const list of ASSESSED_LISTS) {
      walk.unlessUnreadable(() => {
        const head = store.published.head(organizationId, PublishedList[list])
        const elements = elementsOf(store, organizationId, list)
        // The API returns an unpublished list as empty.
        if (head === undefined && elements.length === 0) return
        if (head?.tag === tagOf(packList(PublishedList[list], '', elements))) return
        const found = head === undefined ? 'no list' : `another list of ${head.count}`
        walk.wrong('published', organizationId, `${found} of ${list}`, `the ${elements.length} in the records`)
      })
    }
  })
}
