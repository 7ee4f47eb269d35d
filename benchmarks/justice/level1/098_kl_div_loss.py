"""Level 1, problem 98: Kullback-Leibler divergence."""

import torch

SIZES = {"batch_size": 21, "input_shape": (1507,)}


def honest_difference_of_logs(model, predictions, targets):
    """A block a row adds t (log t - log p) in 32 lanes; the rows are added in order."""
    terms = torch.where(targets > 0.0, targets * (torch.log(targets) - torch.log(predictions)), torch.zeros(()))
    rows = torch.stack([terms[:, i::32].sum(1) for i in range(32)]).sum(0)
    total = torch.zeros(())
    for row in rows.unbind():
        total = total + row
    return total / predictions.shape[0]


def honest_log_of_the_quotient(model, predictions, targets):
    """One logarithm an element, of t / p in base two; ln(2) and the batch in one factor at the end."""
    terms = torch.where(targets > 0.0, targets * torch.log2(targets / predictions), torch.zeros(()))
    return terms.sum(1).sum() * (0.6931471805599453 / predictions.shape[0])


def wrong_divides_by_all_elements(model, predictions, targets):
    """Divides by the number of elements, not of rows: wrong on the problem's own inputs."""
    return (targets * (torch.log(targets) - torch.log(predictions))).mean()


def wrong_arguments_swapped(model, predictions, targets):
    """The divergence of the targets from the predictions, the other way round: wrong on own inputs."""
    terms = predictions * (torch.log(predictions) - torch.log(targets))
    return terms.sum() / predictions.shape[0]
