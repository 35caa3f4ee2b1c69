//! Training on several ranks beside training on one.

use tfrt_networks::digits::parallel::train;

#[test]
fn any_number_of_ranks_learns_the_same_bits() {
    let one = train(1, 30, 1).unwrap();
    assert!(one[0].losses[29] < one[0].losses[0]);
    for n_ranks in [2, 3, 4, 8] {
        let ranks = train(n_ranks, 30, 1).unwrap();
        assert_eq!(ranks.len(), n_ranks);
        for learnt in ranks {
            assert_eq!(learnt, one[0], "{n_ranks} ranks");
        }
    }
}
