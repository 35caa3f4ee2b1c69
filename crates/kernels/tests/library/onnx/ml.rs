//! Tests of learned models: trees, support vectors, maps, encoders.

use super::op;

/// A tree of two leaves: at most 0 goes to node 1, the rest to node 2.
const TREE: &str = "\"nodes_falsenodeids\", [2, 0, 0], \"nodes_featureids\", [1, 0, 0], \"nodes_modes\", \
    [\"BRANCH_LEQ\", \"LEAF\", \"LEAF\"], \"nodes_nodeids\", [0, 1, 2], \"nodes_treeids\", [0, 0, 0], \
    \"nodes_truenodeids\", [1, 0, 0], \"nodes_values\", [0.0 : f32, 0.0 : f32, 0.0 : f32]";

const ROWS: &str = "[[9.0, -1.0], [9.0, 1.0]] 2x2xf32";

/// Returns a tree whose leaves vote: `weights` of class `classes` at `nodes`.
fn votes(what: &str, nodes: &str, classes: &str, weights: &str, more: &str) -> String {
    let trees = nodes.replace(['1', '2'], "0");
    format!(
        "{TREE}, \"{what}_ids\", [{classes}], \"{what}_nodeids\", [{nodes}], \"{what}_treeids\", [{trees}], \
         \"{what}_weights\", [{weights}], {more}"
    )
}

fn classified(nodes: &str, classes: &str, weights: &str, more: &str, wanted: &[&str]) {
    op("ml.TreeEnsembleClassifier")
        .of(ROWS)
        .with(votes("class", nodes, classes, weights, more))
        .opset(3)
        .results(2)
        .gives(wanted);
}

#[test]
fn trees_vote_for_results() {
    let regressed = |more, wanted| {
        op("ml.TreeEnsembleRegressor")
            .of(ROWS)
            .with(votes(
                "target",
                "1, 2",
                "0, 0",
                "0.25 : f32, 0.75 : f32",
                more,
            ))
            .opset(3)
            .gives(&[wanted]);
    };
    regressed("\"n_targets\", 1", "f32 [2, 1] [0.25, 0.75]");
    regressed(
        "\"aggregate_function\", \"AVERAGE\", \"base_values\", [1.0 : f32]",
        "f32 [2, 1] [1.25, 1.75]",
    );
    regressed(
        "\"n_targets\", 1, \"post_transform\", \"PROBIT\"",
        "f32 [2, 1] [-0.6746, 0.6746]",
    );
    regressed(
        "\"n_targets\", 2, \"post_transform\", \"SOFTMAX\"",
        "f32 [2, 2] [0.5622, 0.4378, 0.6792, 0.3208]",
    );
}

#[test]
fn trees_vote_for_classes() {
    let labels = "\"classlabels_int64s\", [5, 7]";
    // One class alone gets votes: it is the second.
    let wanted = ["i64 [2] [5, 7]", "f32 [2, 2] [0.8, 0.2, 0.2, 0.8]"];
    classified("1, 2", "0, 0", "0.2 : f32, 0.8 : f32", labels, &wanted);
    // Some votes are negative: the sign decides.
    let wanted = ["i64 [2] [5, 7]", "f32 [2, 2] [0.5498, 0.4502, 0.31, 0.69]"];
    let logistic = "\"classlabels_int64s\", [5, 7], \"post_transform\", \"LOGISTIC\"";
    classified("1, 2", "0, 0", "-0.2 : f32, 0.8 : f32", logistic, &wanted);
    let strings = "\"classlabels_strings\", [\"a\", \"b\", \"c\"], \"base_values\", [0.1 : f32, 0.2 : f32, 0.3 : f32]";
    let wanted = [
        "str [2] [\"c\", \"b\"]",
        "f32 [2, 3] [-0.1, 0.2, 0.3, 0.1, 0.9, 0.3]",
    ];
    classified("1, 2", "0, 1", "-0.2 : f32, 0.7 : f32", strings, &wanted);
}

#[test]
fn rows_that_are_not_there_may_be_as_wide_as_can_be() {
    let targets = "\"n_targets\", 4611686018427387904";
    op("ml.TreeEnsembleRegressor")
        .of(" 0x2xf32")
        .with(votes("target", "1", "0", "0.25 : f32", targets))
        .opset(3)
        .gives(&["f32 [0, 4611686018427387904] []"]);
}

#[test]
fn broken_trees_are_told_of() {
    let fails = |attributes: String, wanted| {
        op("ml.TreeEnsembleRegressor")
            .of(ROWS)
            .with(attributes)
            .opset(3)
            .fails(wanted);
    };
    let good = votes(
        "target",
        "1, 2",
        "0, 0",
        "0.5 : f32, 0.5 : f32",
        "\"n_targets\", 1",
    );
    let with = |from: &str, to: &str| good.replace(from, to);
    fails(
        with("\"nodes_truenodeids\", [1,", "\"nodes_truenodeids\", [0,"),
        "ml.TreeEnsembleRegressor: a path from node 0 leads back to it",
    );
    fails(
        with("\"nodes_truenodeids\", [1,", "\"nodes_truenodeids\", [9,"),
        "ml.TreeEnsembleRegressor: node 0 of tree 0 leads to node 9, which is not there",
    );
    fails(
        with("BRANCH_LEQ", "BRANCH_MAYBE"),
        "ml.TreeEnsembleRegressor: attribute 'nodes_modes' has no meaning for 'BRANCH_MAYBE'",
    );
    fails(
        with(
            "\"nodes_nodeids\", [0, 1, 2]",
            "\"nodes_nodeids\", [1, 1, 2]",
        ),
        "ml.TreeEnsembleRegressor: node 1 of tree 0 is there twice",
    );
    fails(
        with(
            "\"nodes_featureids\", [1, 0, 0]",
            "\"nodes_featureids\", [1, 0]",
        ),
        "ml.TreeEnsembleRegressor: attribute 'nodes_featureids' is expected to have 3 elements, found 2",
    );
    fails(
        with(
            "\"nodes_featureids\", [1, 0, 0]",
            "\"nodes_featureids\", [2, 0, 0]",
        ),
        "ml.TreeEnsembleRegressor: operand 0 is expected to have 3 features in each row, found 2",
    );
    fails(
        with("\"target_ids\", [0, 0]", "\"target_ids\", [0, 1]"),
        "ml.TreeEnsembleRegressor: a leaf adds to result 1 of 1",
    );
    fails(
        with("\"target_nodeids\", [1, 2]", "\"target_nodeids\", [1, 3]"),
        "ml.TreeEnsembleRegressor: node 3 of tree 0 votes, but is not there",
    );
}

#[test]
fn support_vectors() {
    let vectors = "\"coefficients\", [1.0 : f32, -2.0 : f32], \"kernel_params\", [0.5 : f32, 0.0 : f32, 2.0 : f32], \
        \"kernel_type\", \"RBF\", \"n_supports\", 2, \"rho\", [0.5 : f32], \
        \"support_vectors\", [9.0 : f32, -1.0 : f32, 9.0 : f32, 1.0 : f32]";
    let regressed = |from: &str, to: &str, wanted: &str| {
        op("ml.SVMRegressor")
            .of(ROWS)
            .with(vectors.replace(from, to))
            .gives(&[wanted]);
    };
    // The rows are the vectors: e^0 and e^-2.
    regressed("-", "-", "f32 [2, 1] [1.2293, -1.3647]");
    regressed(
        "\"rho\"",
        "\"one_class\", 1, \"rho\"",
        "f32 [2, 1] [1.0, -1.0]",
    );
    regressed("RBF", "LINEAR", "f32 [2, 1] [-77.5, -83.5]");
    regressed("RBF", "POLY", "f32 [2, 1] [-1518.5, -1761.5]");
    regressed("RBF", "SIGMOID", "f32 [2, 1] [-0.5, -0.5]");

    let classes = "\"classlabels_ints\", [3, 4], \"coefficients\", [1.0 : f32, -2.0 : f32], \
        \"kernel_params\", [0.5 : f32, 0.0 : f32, 2.0 : f32], \"kernel_type\", \"RBF\", \"rho\", [0.5 : f32], \
        \"support_vectors\", [9.0 : f32, -1.0 : f32, 9.0 : f32, 1.0 : f32], \"vectors_per_class\", [1, 1]";
    let wanted = [
        "i64 [2] [3, 4]",
        "f32 [2, 2] [-1.2293, 1.2293, 1.3647, -1.3647]",
    ];
    op("ml.SVMClassifier")
        .of(ROWS)
        .with(classes)
        .results(2)
        .gives(&wanted);
    op("ml.SVMClassifier")
        .of(ROWS)
        .with(classes.replace("\"rho\", [", "\"rho\", [], \"rho2\", ["))
        .results(2)
        .fails("ml.SVMClassifier: attribute 'rho' is missing");
}

#[test]
fn rows_become_maps() {
    op("ml.ZipMap")
        .of(ROWS)
        .with("\"classlabels_strings\", [\"a\", \"b\"]")
        .gives(&["!t.maps"]);
    op("ml.ZipMap")
        .of(ROWS)
        .with("\"classlabels_int64s\", [1, 2, 3]")
        .fails("ml.ZipMap: operand 0 is expected to have a column for each of 3 labels, found extents [2, 2]");
    op("ml.DictVectorizer")
        .of(ROWS)
        .with("\"int64_vocabulary\", [1, 2]")
        .fails("ml.DictVectorizer: operand 0 is expected to be a map");
}

#[test]
fn categories_are_encoded() {
    op("ml.CategoryMapper")
        .of("[2, 9] 2xi64")
        .with("\"cats_int64s\", [1, 2], \"cats_strings\", [\"a\", \"b\"], \"default_string\", \"none\"")
        .gives(&["str [2] [\"b\", \"none\"]"]);
    op("ml.LabelEncoder")
        .of("[1, 9] 2xi64")
        .with("\"classes_strings\", [\"a\", \"b\"]")
        .gives(&["str [2] [\"b\", \"_Unused\"]"]);
    op("ml.OneHotEncoder")
        .of("[2, 1] 2xi64")
        .with("\"cats_int64s\", [1, 2], \"zeros\", 0")
        .gives(&["f32 [2, 2] [0.0, 1.0, 1.0, 0.0]"]);
    op("ml.OneHotEncoder")
        .of("[2, 3] 2xi64")
        .with("\"cats_int64s\", [1, 2], \"zeros\", 0")
        .fails("ml.OneHotEncoder: operand 0 has the category '3', which is unknown");
}

#[test]
fn a_single_score_says_which_of_two_classes() {
    let attributes = "\"classlabels_ints\", [5, 7], \"coefficients\", [0.0 : f32, 1.0 : f32], \"intercepts\", [0.25 : f32]";
    op("ml.LinearClassifier")
        .of(ROWS)
        .with(attributes)
        .results(2)
        .gives(&["i64 [2] [5, 7]", "f32 [2, 2] [1.75, -0.75, -0.25, 1.25]"]);
}
